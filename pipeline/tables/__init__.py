"""Tables in a data lake: plain Parquet, Delta Lake or Iceberg; batches are added to them, each exactly once.

    from barnabas.pipeline.tables import CompactOptions, TableOptions, compact

    table = TableOptions(location="/lake/orders", partition_by=["date"])
    compact(spark, CompactOptions(table=table))

`lake_table` is the interface of a table; `parquet`, `delta` and `iceberg` implement it; `opening` chooses one
of them; `compaction` merges small files. Importing this package does not load PySpark or PyArrow.
"""

from barnabas.pipeline.tables.compaction import compact
from barnabas.pipeline.tables.lake_table import Compacted
from barnabas.pipeline.tables.options import CompactOptions, TableOptions

__all__ = ["CompactOptions", "Compacted", "TableOptions", "compact"]
