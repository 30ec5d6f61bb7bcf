"""Share state in a log: which batches are, and where each group's begins."""
