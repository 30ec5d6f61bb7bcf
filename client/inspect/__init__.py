"""The parts behind `ShareBrowser` and `ShareGroupAdmin`."""
