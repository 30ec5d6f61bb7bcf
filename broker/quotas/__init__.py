"""Client quotas (KIP-13, KIP-124, KIP-219, KIP-599): the usage of each client, and its throttle time.

`windowed_rate.py` and `token_bucket.py` measure usage, `throttling.py` rounds a delay to a throttle time,
`quota_table.py` finds the quota of a client, `client_quotas.py` holds these together, and `meter.py` charges
one request. Only `meter.py` reads a clock.
"""
