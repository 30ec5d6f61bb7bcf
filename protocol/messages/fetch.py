"""Fetch requests (key 1, KIP-98, KIP-227, KIP-516) of every version, as the broker's own decoder gives them.

A topic has a name in versions up to 12, an id from 13 on.
"""

from barnabas.protocol.decode.fetch import FetchBody, FetchPartition, FetchTopic

__all__ = ["FetchBody", "FetchPartition", "FetchTopic"]
