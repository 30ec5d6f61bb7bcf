"""The segments of one log: files of batches, and their indexes."""
