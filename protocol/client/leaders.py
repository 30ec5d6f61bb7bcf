"""The leaders that a response names if the broker is not the leader (KIP-951), for a client.

They are tagged fields; Fetch and Produce use different tags. Unknown tagged fields are skipped.
"""

from __future__ import annotations

import struct
from typing import Final

from barnabas.protocol.client.share_fetch_response import read_endpoint
from barnabas.protocol.decode.reader import FlexibleReader
from barnabas.protocol.message_parts import NODE_ENDPOINTS_TAG, NodeEndpoint

_LEADER: Final = struct.Struct(">ii")


def read_leader(reader: FlexibleReader, leader_tag: int) -> tuple[int, int] | None:
    """Reads the end of a partition's result: (node id, leader epoch) of another leader, or None."""
    leader: tuple[int, int] | None = None
    for _ in range(reader.varint()):
        tag, content = reader.varint(), _content(reader)
        if tag == leader_tag:
            node_id, leader_epoch = content.fields(_LEADER)
            leader = (node_id, leader_epoch)
    return leader


def read_endpoints(reader: FlexibleReader) -> list[NodeEndpoint]:
    """Reads the end of a response: the addresses of the leaders in it."""
    endpoints: list[NodeEndpoint] = []
    for _ in range(reader.varint()):
        tag, content = reader.varint(), _content(reader)
        if tag == NODE_ENDPOINTS_TAG:
            endpoints = content.array(read_endpoint)
    return endpoints


def _content(reader: FlexibleReader) -> FlexibleReader:
    """A reader for one tagged field, which cannot read beyond it."""
    return FlexibleReader(reader.take(reader.varint()), 0)
