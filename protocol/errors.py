"""Kafka's error codes, and the two errors for a peer's fault.

`ApiError` becomes an error code in a response, for the partition, group or request that it concerns.
`FrameError` closes the connection, because nothing after an unreadable frame can be trusted. Any other
exception during a request is a bug in Barnabas.
"""

from __future__ import annotations

from typing import Final

from kio.schema.errors import ErrorCode

__all__ = ["MESSAGE_LENGTH_MAX", "ApiError", "ErrorCode", "FrameError"]

MESSAGE_LENGTH_MAX: Final = 8000
"""The most characters of an error's message. Even at four bytes each, it fits into a string of the versions
that are not flexible, 32,767 bytes. Many messages repeat data of the peer, which may be that long itself."""

_LEFT_OUT: Final = " ... "


class ApiError(Exception):
    """The request cannot be fulfilled: the response has `code`, and `message` if the API has a field for it.

    A message longer than `MESSAGE_LENGTH_MAX` loses its middle, because the explanation often follows the
    value.
    """

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        self.code = code
        self.message = message if message is None else _shortened(message)
        super().__init__(code, self.message)

    def __str__(self) -> str:
        return f"{self.code.name}: {self.message}" if self.message else self.code.name


def _shortened(message: str) -> str:
    if len(message) <= MESSAGE_LENGTH_MAX:
        return message
    kept = (MESSAGE_LENGTH_MAX - len(_LEFT_OUT)) // 2
    return message[:kept] + _LEFT_OUT + message[-kept:]


class FrameError(Exception):
    """The peer sent bytes that violate Kafka's protocol: the connection is closed without an answer."""
