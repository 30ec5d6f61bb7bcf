"""Coordinators: state machines whose every change is a record in an internal topic or in the metadata log.

`share_group/` coordinates share groups (KIP-932), `consumer/` consumer groups (KIP-848), `classic/` classic
groups. `offsets/` keeps the offsets that classic and consumer groups commit. `groups` combines all of these,
`group/` holds their common parts. `assignor/` assigns partitions to members. `transaction/` coordinates
transactions, `share_state/` keeps the delivery state of share-partitions, `metadata/` the cluster's topics,
configurations and features. `replay/` is the machinery of all coordinators over internal topics.

Coordinators decide and replay. Storage appends. The edge in `broker/` holds the sockets, the clock and the
timers.
"""
