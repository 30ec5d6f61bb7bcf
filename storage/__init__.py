"""Logs on disk in Kafka's format: segments, indexes, recovery, retention, behind one filesystem seam.

`directory/` is the way in: it owns the data directory, its lock, checkpoints and the flushing of all logs.
`log` is one partition's log, put together from `recovery/` (opening it), `appending/`, `reading/`,
`flushing/`, `cleaner/` (compaction) and its files (`segments/`). `format/` knows what the bytes mean, and
nothing of disks. Share groups' state is stored here as control records: `share/` tells where they are;
their meaning is the subject of `format/` and of the broker's share partitions.
"""
