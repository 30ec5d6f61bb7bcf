"""Produce: what came is checked, prepared, put in order and, in a transaction, added to it."""
