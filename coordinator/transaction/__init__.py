"""The transaction coordinator: producers' transactions over `__transaction_state` (KIP-98, KIP-360, KIP-890).

`coordinator` is the way in. A transactional id's state is a `transaction`, and what may become of it at a
producer's request is decided in `initialisation`, `partitions` and `ending`; `completion` sees to it that
every partition gets the marker of a transaction that was decided. Pure, like all of `barnabas.coordinator`.
"""
