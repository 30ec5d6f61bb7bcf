"""Fetch: the wait of a request, and the part of each partition in its response (KIP-227)."""
