"""Produce requests (key 0, KIP-98, KIP-516) of every version, as the broker's own decoder gives them.

A topic has a name in versions up to 12, an id in 13.
"""

from barnabas.protocol.decode.produce import ProduceBody, ProducePartition, ProduceTopic

__all__ = ["ProduceBody", "ProducePartition", "ProduceTopic"]
