"""The parts behind `ShareBrowser` and `ShareAdmin`."""
