"""FindCoordinator responses for several keys, versions 4 to 6 (KIP-699).

Most keys have the same coordinator, which is encoded once.
"""

from __future__ import annotations

import struct
from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.message_parts import INT32, NO_TAGS, compact_count, compact_string

_PORT_AND_ERROR: Final = struct.Struct(">ih")

RESPONSE_END: Final = NO_TAGS
"""The bytes after the last coordinator."""


def encode_response_start(key_count: int) -> bytes:
    """The bytes before the first coordinator."""
    return INT32.pack(0) + compact_count(key_count)


def encode_coordinator_of(key: str, node: bytes) -> bytes:
    """A key with its coordinator from `encode_node`."""
    return compact_string(key) + node


def encode_node(node_id: int, host: str, port: int, error_code: ErrorCode, error_message: str) -> bytes:
    """A coordinator, or the error if there is none."""
    return b"".join(
        (
            INT32.pack(node_id),
            compact_string(host),
            _PORT_AND_ERROR.pack(port, error_code.value),
            compact_string(error_message),
            NO_TAGS,
        )
    )
