"""Share sessions: the partitions that each member fetches from, and their acknowledgements (KIP-932)."""
