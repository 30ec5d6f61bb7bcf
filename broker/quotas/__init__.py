"""Client quotas enforced (KIP-13, KIP-124, KIP-219, KIP-599): what a client has used of them, and how long it
is to be kept waiting for it.

`windowed_rate.py` and `token_bucket.py` measure, `quota_table.py` finds the quota that is a client's,
`client_quotas.py` holds both together, `meter.py` charges one request. Pure, but for the time that a meter
takes.
"""
