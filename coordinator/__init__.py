"""Coordinators: state machines whose every change is a record in an internal topic.

`share_group/` coordinates share groups (KIP-932), `consumer/` consumer groups (KIP-848), `classic/` classic
groups, `offsets/` what groups of every type but the first commit; `groups` is all of these together, `group/`
what they share. `assignor/` spreads partitions over members. `transaction/` coordinates transactions,
`share_state/` keeps the delivery state of share-partitions, `metadata/` topics, configurations and what else
the cluster has. `runtime/` is what those over internal topics are made of.

They decide and replay; storage appends, and the edge in `broker/` holds the sockets, the clock and the
timers.
"""
