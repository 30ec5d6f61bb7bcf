"""The share coordinator (KIP-932, "Share coordinator"): the delivery state of share-partitions, kept as
records of `__share_group_state`.

The leader of a share-partition decides the state of its records. The share coordinator only stores that: it
initialises, writes, reads and deletes state, and fences writers of older epochs. Decisions are pure and
return records, and only their replay changes state. `share_coordinator.py` is the entry point. A broker with
`share.state.store=log` does not use it.
"""
