"""Logs on disk in Kafka's format: segments, indexes, recovery, retention, behind one filesystem seam.

`directory/` is the entry: it owns the data directory, its lock, checkpoints and the flushing of all logs.
`log/` is one partition's log and the appends to it. Its parts are `recovery/` (opening), `reading/`,
`flushing/`, `retention/`, `cleaner/` (compaction), `producers/` (idempotence and transactions), the state
that they share (`state/`) and its files (`segments/`, `files/`). `format/` defines the bytes and does no I/O.
The state of share groups is stored as control records: `share/` knows their offsets; `format/` and the
broker's share partitions know their meaning.
"""
