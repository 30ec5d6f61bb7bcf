"""The shell around the pure share partition: it loads, records, reads, times and wakes."""
