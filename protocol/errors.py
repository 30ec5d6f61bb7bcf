"""Kafka's error codes, and the two ways in which a peer's fault is told apart from ours.

`ApiError` becomes an error code in a response, for the partition, group or request that it concerns;
`FrameError` closes the connection, because nothing behind an unreadable frame can be trusted. Anything
else that is raised while a request is served is our own bug.
"""

from __future__ import annotations

from typing import Final

from kio.schema.errors import ErrorCode

__all__ = ["MESSAGE_LENGTH_MAX", "ApiError", "ErrorCode", "FrameError"]

MESSAGE_LENGTH_MAX: Final = 8000
"""Characters of an error's message. One of four bytes each still fits into a string of the versions that are
not flexible, 32,767 bytes; many messages repeat what the peer sent, which may be as long itself."""

_LEFT_OUT: Final = " ... "


class ApiError(Exception):
    """The peer asked for what cannot be done: answered with `code`, and `message` where the API has room.

    Of a message longer than `MESSAGE_LENGTH_MAX` the middle is left out: what is wrong with a value mostly
    stands behind it.
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
    """The peer sent bytes that are no request in Kafka's protocol: the connection is closed, unanswered."""
