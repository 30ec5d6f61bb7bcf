"""Common parts of the encoders: strings, counts, lists of node endpoints, sizes of records."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from barnabas.protocol.varint import Buffer, unsigned_varint

INT16: Final = struct.Struct(">h")
INT32: Final = struct.Struct(">i")

NO_TAGS: Final = b"\x00"
"""The count of a flexible structure's tagged fields if it has none."""

_EMPTY_COMPACT_ARRAY: Final = b"\x01"

NODE_ENDPOINTS_TAG: Final = 0


class NodeEndpoint(NamedTuple):
    """The address of a node that is named as a partition's leader (KIP-951)."""

    node_id: int
    host: str
    port: int
    rack: str | None = None


NULL_STRING: Final = b"\x00"
"""A compact string that is null."""


def compact_string(text: str | None) -> bytes:
    """A compact nullable string."""
    if text is None:
        return NULL_STRING
    encoded = text.encode()
    return unsigned_varint(len(encoded) + 1) + encoded


def string(text: str | None) -> bytes:
    """A nullable string of a version that is not flexible."""
    if text is None:
        return b"\xff\xff"
    encoded = text.encode()
    return INT16.pack(len(encoded)) + encoded


@lru_cache(maxsize=1024)
def compact_count(count: int) -> bytes:
    """The length of a compact array, or of compact bytes; the same few recur."""
    return unsigned_varint(count + 1)


def tagged_field(tag: int, content: bytes) -> bytes:
    return unsigned_varint(tag) + unsigned_varint(len(content)) + content


def tagged_fields(fields: Sequence[tuple[int, bytes]]) -> bytes:
    """The end of a flexible structure; `fields` are the tagged fields with non-default values, by tag."""
    if not fields:
        return NO_TAGS
    return unsigned_varint(len(fields)) + b"".join([tagged_field(tag, content) for tag, content in fields])


def compact_endpoints(endpoints: Sequence[NodeEndpoint]) -> bytes:
    """A compact array of node endpoints, which is usually empty."""
    if not endpoints:
        return _EMPTY_COMPACT_ARRAY
    return compact_count(len(endpoints)) + b"".join([_endpoint(endpoint) for endpoint in endpoints])


def size_bytes(buffers: Iterable[Buffer]) -> int:
    """The total length of the buffers."""
    return sum(map(len, buffers))


def _endpoint(endpoint: NodeEndpoint) -> bytes:
    node_id, host, port, rack = endpoint
    return b"".join(
        (INT32.pack(node_id), compact_string(host), INT32.pack(port), compact_string(rack), NO_TAGS)
    )
