"""Plain Parquet tables that are written batch by batch, each exactly once, and compacted.

A table's log names its files. It has one file per version, which is written in one step. It has the format of
Spark's own streaming sink (`_spark_metadata`), so `spark.read.parquet` uses it without any part of Barnabas.
Give other readers the files from `committed_files`.

`log` is the log as text, `log_files` reads and writes it, `table` takes batches, `compaction` merges small
files.
"""
