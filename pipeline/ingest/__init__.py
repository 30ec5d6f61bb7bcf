"""Ingest: streams records of a share group or of topics into a table, each exactly once.

    from barnabas.pipeline.ingest import IngestOptions, ingest
    from barnabas.pipeline.tables import TableOptions

    query = ingest(spark, IngestOptions(
        source_options={"servers": "127.0.0.1:9092", "group": "lake", "topics": "orders"},
        table=TableOptions(location="/lake/orders", partition_by=["date"]),
        checkpoint="/lake/checkpoints/orders",
    ))
    query.awaitTermination()

`streaming` starts the stream, `batch_writer` writes its batches, `values` decodes them. Importing this
package does not load PySpark or PyArrow.
"""

from barnabas.pipeline.ingest.batch_writer import BatchWriter, WrittenBatch
from barnabas.pipeline.ingest.options import IngestOptions
from barnabas.pipeline.ingest.streaming import batch_writer, ingest
from barnabas.pipeline.ingest.values.options import ValueOptions

__all__ = ["BatchWriter", "IngestOptions", "ValueOptions", "WrittenBatch", "batch_writer", "ingest"]
