"""Classic groups: the protocol of JoinGroup and SyncGroup (KIP-62, KIP-345, KIP-394, KIP-429, KIP-800,
KIP-814).

A group's members join, the leader gets the list of members and assigns, and each member syncs to get its
part. The coordinator does not interpret the parts. `group` holds the members and the state, `rebalance` moves
a group from one generation to the next, `membership` decides on each request, `offsets` has the rules for
commits. `coordinator` is the entry point. Everything is pure except the replies; records are appended through
`coordinator.replay`.
"""
