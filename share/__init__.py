"""Share groups, the product: many consumers work on one partition, record by record (KIP-932).

`partition` decides, `sessions` remembers the partitions of each member, `leader` joins a share-partition to
its log, `log_store` and `topic_store` make decisions durable, and `fetch` answers ShareFetch.
"""
