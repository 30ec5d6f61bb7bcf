"""Reads of a log: batches by offset and by time, verified when they are read for the first time."""
