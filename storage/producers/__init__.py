"""Producers of one log: sequences, epochs and open transactions."""
