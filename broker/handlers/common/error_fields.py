"""The two fields of an error in a result: its code and its message."""

from __future__ import annotations

from typing import TypedDict

from barnabas.protocol.errors import ApiError, ErrorCode


class ErrorFields(TypedDict):
    """Arguments for the class of a result."""

    error_code: ErrorCode
    error_message: str | None


def error_fields(error: ApiError | None) -> ErrorFields:
    """The fields of this error; those of a success for None."""
    if error is None:
        return {"error_code": ErrorCode.none, "error_message": None}
    return {"error_code": error.code, "error_message": error.message}
