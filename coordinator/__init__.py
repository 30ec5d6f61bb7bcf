"""Coordinators: state machines whose every change is a record in an internal topic.

`group/` coordinates share groups (KIP-932), `assignor/` spreads partitions over their members, `metadata/`
keeps topics and configurations. They decide and replay; storage appends, and the edge in `broker/` holds the
sockets, the clock and the timers.
"""
