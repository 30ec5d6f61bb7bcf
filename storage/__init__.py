"""Logs on disk in Kafka's format: segments, indexes, recovery, retention, behind one filesystem seam.

`log_directory` is the way in: it owns the data directory, its lock, checkpoints and the flushing of all logs;
`log` is one partition's log. Share groups' state is stored here as control records, whose meaning is the
subject of `storage.format` and of the broker's share partitions.
"""
