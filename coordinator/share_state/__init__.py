"""The share coordinator (KIP-932, "Share coordinator"): the delivery state of share-partitions, kept as
records of `__share_group_state`.

Who leads a share-partition decides what becomes of its records; here that is only kept: initialised, written,
read, deleted, with writers of older epochs fenced. Decisions are pure and return records; the coordinators'
runtime has them appended and then replayed, which alone changes anything. `share_coordinator.py` is the way
in. A broker whose share state is in the partitions' own logs has none of this.
"""
