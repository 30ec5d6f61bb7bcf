"""The leaders of share-partitions: they join the pure state to the log, the store and the clock."""
