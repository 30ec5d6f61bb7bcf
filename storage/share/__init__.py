"""Share state in a log: the recognition of its batches, and the head of each group."""
