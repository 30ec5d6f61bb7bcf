"""The way of a request from its socket to its handler, and of the answer back."""
