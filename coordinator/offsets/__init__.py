"""The offsets that groups commit: classic groups, consumer groups (KIP-848), and "simple" groups, which no
member joins: consumers only store offsets under their ids.

`committed_offsets` keeps the offsets in force, `pending_offsets` those of open transactions. `commit`,
`fetch`, `deletion` and `expiry` decide on records and answers; `retention_rounds` schedules the checks of
expiry. The types of groups decide who may commit and which topics are read, through `interfaces`.
`coordinator` is the entry point. The offsets of share groups are share state, and not here.
"""
