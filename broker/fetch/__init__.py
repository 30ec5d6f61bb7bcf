"""Fetch: its sessions, its wait, and what each partition has for it (KIP-227)."""
