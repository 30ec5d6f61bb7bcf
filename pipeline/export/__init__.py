"""The way out, and the way in: topics with their groups' state into a directory of Parquet files, and back.

    export_topics(spark, ExportRequest(servers=..., topics=("orders",)), "s3://bucket/orders")
    restore_topics(spark, RestoreRequest(servers=...), "s3://bucket/orders")

Works between Barnabas and Apache Kafka in every direction. What is in the directory: `directory`, `manifest`.
Both go on where they were stopped. The same from a shell: `barnabas pipeline export`, `restore`.
"""
