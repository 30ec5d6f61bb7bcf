"""Cleans logs: removes obsolete share state, and compacts topics to the latest record of each key.

`directory.cleaner` is the task for all logs; `log_cleaning` cleans one of them. `assessment` chooses logs and
segments, `compaction` chooses records. New segments are written beside the old ones, in slices in threads
(`slices`), and swapped in (`segments.swap`).
"""
