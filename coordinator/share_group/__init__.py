"""The share group coordinator (KIP-932, "Group coordinator"): the members of each group, and the partitions
that they read.

Decisions are pure and return records. `replay` appends them to the group's partition of `__consumer_offsets`,
and only their replay changes a group. `coordinator` is the entry point. Delivery state (acquired and
acknowledged records, where a group starts to read) is kept with the partitions, not here.
"""
