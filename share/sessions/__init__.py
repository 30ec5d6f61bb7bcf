"""Share sessions: the partitions that each member fetches from (KIP-932, "Share sessions"). Pure."""
