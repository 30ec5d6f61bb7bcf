"""Ingest: records of a share group or a topic into a table, each exactly once; and merging its small files.

    from barnabas.pipeline.ingest import IngestOptions, TableOptions, ingest

    query = ingest(spark, IngestOptions(
        source_options={"servers": "127.0.0.1:9092", "group": "lake", "topics": "orders"},
        table=TableOptions(location="/lake/orders", partition_by=["date"]),
        checkpoint="/lake/checkpoints/orders",
    ))
    query.awaitTermination()

`streaming` starts the stream, `batch_writer` writes its batches, `values` decodes them; the formats are
`parquet`, `delta` and `iceberg`. Importing this package loads neither PySpark nor PyArrow.
"""

from barnabas.pipeline.ingest.batch_writer import BatchWriter, WrittenBatch
from barnabas.pipeline.ingest.compaction import Compacted, compact
from barnabas.pipeline.ingest.options import CompactOptions, IngestOptions, TableOptions
from barnabas.pipeline.ingest.streaming import batch_writer, ingest
from barnabas.pipeline.ingest.values.options import ValueOptions

__all__ = [
    "BatchWriter",
    "CompactOptions",
    "Compacted",
    "IngestOptions",
    "TableOptions",
    "ValueOptions",
    "WrittenBatch",
    "batch_writer",
    "compact",
    "ingest",
]
