"""The share consumer (KIP-932): membership, sessions, held records and their locks, acknowledgements."""
