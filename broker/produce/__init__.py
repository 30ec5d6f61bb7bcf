"""Produce: batches are checked, prepared and put in order; partitions are added to their transactions."""
