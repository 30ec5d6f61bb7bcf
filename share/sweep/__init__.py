"""The sweep over share-partitions without a fetch: records expire, and dead letters are written."""
