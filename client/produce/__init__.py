"""The producer: batches in the making, their delivery, transactions; a writer of batches that are ready."""
