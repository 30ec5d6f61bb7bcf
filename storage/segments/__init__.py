"""The files of one log, a segment each: batches and indexes."""
