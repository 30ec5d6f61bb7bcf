"""Kafka's error codes, and the two ways in which a peer's fault is told apart from ours.

`ApiError` becomes an error code in a response, for the partition, group or request that it concerns;
`FrameError` closes the connection, because nothing behind an unreadable frame can be trusted. Anything
else that is raised while a request is served is our own bug.
"""

from __future__ import annotations

from kio.schema.errors import ErrorCode

__all__ = ["ApiError", "ErrorCode", "FrameError"]


class ApiError(Exception):
    """The peer asked for what cannot be done: answered with `code`, and `message` where the API has room."""

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return f"{self.code.name}: {self.message}" if self.message else self.code.name


class FrameError(Exception):
    """The peer sent bytes that are no request in Kafka's protocol: the connection is closed, unanswered."""
