"""The parts of the producer of records: options, buffer memory, batches in the making, transactions."""
