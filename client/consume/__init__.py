"""The parts of an ordinary consumer (KIP-848): membership, reconciliation, fetching, positions, commits."""
