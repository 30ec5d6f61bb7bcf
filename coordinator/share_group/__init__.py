"""The share group coordinator (KIP-932, "Group coordinator"): who is in a group, and who reads which
partitions.

Decisions are pure and return records; the coordinators' runtime has them appended to the group's partition of
`__consumer_offsets` and then replayed, which alone changes a group. `coordinator` is the way in.
Delivery state (what was acquired, acknowledged, where a group starts to read) is not kept here but with the
partitions themselves.
"""
