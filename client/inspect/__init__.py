"""The states of a share group's records: `ShareBrowser` reads them, `ShareGroupAdmin` changes them."""
