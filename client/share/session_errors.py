"""Errors of share fetches and acknowledgements (KIP-932): those that last, and those that end a session."""

from __future__ import annotations

from typing import Final

from barnabas.client.errors import broker_error, error_code
from barnabas.protocol.errors import ErrorCode

_LASTING: Final = frozenset(
    {
        ErrorCode.group_authorization_failed,
        ErrorCode.topic_authorization_failed,
        ErrorCode.unsupported_version,
        ErrorCode.invalid_request,
        ErrorCode.invalid_group_id,
    }
)
"""Errors that the same request would get again."""


class SessionLostError(Exception):
    """The broker does not accept this session any more; its owner opens another."""

    def __init__(self, code: ErrorCode, message: str | None) -> None:
        super().__init__(f"{code.name}: {message}" if message else code.name)
        self.code = code


def check_response(number: int, message: str | None) -> None:
    """Raises if the whole response is an error: `BrokerError` for a lasting one, else `SessionLostError`."""
    code = temporary_code(number, message)
    if code is not ErrorCode.none:
        raise SessionLostError(code, message)


def temporary_code(number: int, message: str | None) -> ErrorCode:
    """The code of a partition's temporary error; raises `BrokerError` for a lasting one."""
    code = error_code(number)
    if code in _LASTING:
        raise broker_error(code, message)
    return code
