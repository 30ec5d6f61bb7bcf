"""Classic groups: the protocol of JoinGroup and SyncGroup (KIP-62, KIP-345, KIP-394, KIP-429, KIP-800,
KIP-814).

A group's members join, one of them is told of all and assigns, each syncs to get its part. What the parts
mean the coordinator doesn't know. `group` holds who is there and in which state, `rebalance` moves a group
from one generation to the next, `membership` decides on each request; `offsets` says who may commit in the
group's name. `coordinator` is the way in. Everything is pure but for the replies: what is appended goes
through `coordinator.runtime`.
"""
