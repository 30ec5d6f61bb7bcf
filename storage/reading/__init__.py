"""The way out of a log: batches by offset and by time, checked when they are read first."""
