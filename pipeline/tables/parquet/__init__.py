"""Plain Parquet tables that are written batch by batch, each exactly once, and compacted.

Which files belong to a table stands in its log, one file per version, each put there in one step. The log
has the form of that of Spark's own streaming sink (`_spark_metadata`), so that `spark.read.parquet` goes by
it with nothing of ours installed. Any other reader is given the files that `committed_files` names.

`log` is the log as text, `log_files` reads and writes it, `table` takes batches, `compaction` merges small
files.
"""
