"""Fetch sessions: the partitions that each ordinary consumer fetches from (KIP-227). Pure."""
