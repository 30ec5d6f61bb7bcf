"""Export and restore: topics with their groups' state to a directory of Parquet files, and back.

    export_topics(spark, ExportRequest(servers=..., topics=("orders",)), "s3://bucket/orders")
    restore_topics(spark, RestoreRequest(servers=...), "s3://bucket/orders")

Both work with Barnabas and Apache Kafka, and go on where they were stopped. `directory` and `manifest`
describe the files. The commands are `barnabas pipeline export` and `restore`.
"""
