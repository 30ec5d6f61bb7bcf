"""The offsets that groups commit, whatever their type: classic groups, consumer groups (KIP-848), and
"simple" groups, which nobody joins: consumers only store offsets under their names.

`committed_offsets` keeps those that count, `pending_offsets` those of transactions that haven't ended.
`commit`, `fetch`, `deletion` and `expiry` decide what is written and told, `retention_rounds` when which
groups' offsets are looked at for their expiry. Who may commit, and what is still read, the types of groups
say, as `interfaces` asks. `coordinator` is the way in. Share groups' offsets are no part of this: they are
share state.
"""
