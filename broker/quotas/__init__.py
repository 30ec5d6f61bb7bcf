"""Client quotas enforced (KIP-13, KIP-124, KIP-219, KIP-599): what a client has used of them, and how long it
is to be kept waiting for it.

`windowed_rate.py` and `token_bucket.py` measure, `throttling.py` rounds that to what can be told,
`quota_table.py` finds the quota that is a client's, `client_quotas.py` holds these together, `meter.py`
charges one request. Pure, but for the time that a meter takes.
"""
