"""Kafka's error codes, and the errors that are outcomes of a request.

`ApiError` becomes an error code in a response, for the partition, group or request that it concerns.
`FrameError` closes the connection, because nothing after an unreadable frame can be trusted. Other outcomes
are a fault of the disk (`StorageError`) and a client that is gone (`Withdrawn`). Any other exception during a
request is a bug in Barnabas.

Code that keeps an outcome, in a result, a list or an attribute, keeps it `without_frames`.
"""

from __future__ import annotations

from typing import Final, TypeVar

from kio.schema.errors import ErrorCode

__all__ = [
    "MESSAGE_LENGTH_MAX",
    "ApiError",
    "ErrorCode",
    "ExpectedError",
    "FrameError",
    "Withdrawn",
    "without_frames",
]

MESSAGE_LENGTH_MAX: Final = 8000
"""The most characters of an error's message. Even at four bytes each, it fits into a string of the versions
that are not flexible, 32,767 bytes. Many messages repeat data of the peer, which may be that long itself."""

_LEFT_OUT: Final = " ... "


class ExpectedError(Exception):
    """An outcome of a request, and no bug: where it was raised is of no interest."""


class ApiError(ExpectedError):
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


class FrameError(ExpectedError):
    """The peer sent bytes that violate Kafka's protocol: the connection is closed without an answer."""


class Withdrawn(ExpectedError):  # noqa: N818  # an outcome, not an error
    """The client of a delayed operation is gone, so the operation has no answer."""


_ErrorT = TypeVar("_ErrorT", bound=Exception)


def without_frames(error: _ErrorT) -> _ErrorT:
    """A copy of an `ExpectedError` without its traceback: to keep it, or to raise one that is kept.

    A traceback holds the frames of all functions that the error has passed, and of their callers, with all
    of their variables: the request, its decompressed records, and usually the place that keeps the error.
    Such a circle is freed by the garbage collector alone, which runs rarely and does not count bytes. An
    error that is raised repeatedly also collects more frames each time.

    The cause is kept, without its traceback and its own context. Any other exception is returned unchanged:
    it is a bug, and the log needs its traceback.
    """
    if not isinstance(error, ExpectedError):
        return error
    copy = type(error).__new__(type(error), *error.args)  # no __init__: subclasses have other parameters
    copy.__dict__.update(error.__dict__)
    cause = copy.__cause__ = error.__cause__
    while cause is not None and cause.__traceback__ is not None:
        cause.__traceback__ = cause.__context__ = None
        cause = cause.__cause__
    return copy
