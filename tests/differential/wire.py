"""Requests and answers as frames, for any broker at the other end.

The messages are kio's, of the spoken version, so no part of the broker under test encodes requests or decodes
answers.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

from tests.conformance.messages import message, message_type, read, written
from tests.differential.wire_transactions import read_described_transactions

_API_VERSIONS = "api_versions"
_UNREADABLE = "describe_transactions"


class Asked(NamedTuple):
    """A sent request."""

    api: str
    version: int


def encode(api: str, version: int, correlation_id: int, client_id: str, values: dict[str, Any]) -> bytes:
    """A request's frame without its length; fields that the version lacks are left out."""
    name = client_id.encode()
    request = message_type(api, version, "request")
    header = struct.pack(">hhih", request.__api_key__, version, correlation_id, len(name)) + name
    if request.__flexible__:
        header += b"\0"
    return header + written(message(request, values))


def decode(asked: Asked, frame: bytes) -> Any:
    """The answer in a frame without its length."""
    response = message_type(asked.api, asked.version, "response")
    has_tags = response.__flexible__ and asked.api != _API_VERSIONS
    body = frame[5 if has_tags else 4 :]
    return read_described_transactions(body) if asked.api == _UNREADABLE else read(response, body)
