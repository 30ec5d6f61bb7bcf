"""The consumer (KIP-848): membership, reconciliation, fetching, positions, commits; reads without a group."""
