"""Cleaning logs: share state that nobody needs any more goes, and compacted topics keep their latest records.

`cleaner` is the task that looks after all logs, `log_cleaning` cleans one of them; what goes is decided by
`assessment` (which log, which segments) and `compaction` (which records). New segments are written beside the
old ones and swapped in (`swap`), in slices off the loop (`slices`).
"""
