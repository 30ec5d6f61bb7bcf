"""The transaction coordinator: producers' transactions over `__transaction_state` (KIP-98, KIP-360, KIP-890).

`coordinator` is the entry point. `transaction` is the state of a transactional id; `initialisation`,
`partitions` and `ending` decide on a producer's requests; `decided_transactions` writes the markers of a
decided transaction to every partition. Pure.
"""
