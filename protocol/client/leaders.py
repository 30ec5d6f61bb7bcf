"""The leaders that a response names if the broker is not the leader (KIP-951), for a client.

They are tagged fields; Fetch and Produce use different tags. Unknown tagged fields are skipped.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final

from barnabas.protocol.client.share_fetch_response import read_endpoint
from barnabas.protocol.decode.reader import FlexibleReader
from barnabas.protocol.message_parts import NODE_ENDPOINTS_TAG, NodeEndpoint
from barnabas.protocol.varint import Buffer

_LEADER: Final = struct.Struct(">ii")


def leader_of(tags: Mapping[int, Buffer], leader_tag: int) -> tuple[int, int] | None:
    """(node id, leader epoch) of another leader in the tagged fields of a partition's result, or None."""
    content = tags.get(leader_tag)
    if content is None:
        return None
    node_id, leader_epoch = _LEADER.unpack_from(content)
    return node_id, leader_epoch


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
