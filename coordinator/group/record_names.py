"""Ids and names that the keys of records can hold."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.errors import ApiError, ErrorCode

NAME_BYTES_MAX: Final = 2**15 - 1
"""The longest name that a key can hold. Newer versions of the requests can hold longer ones."""


def is_too_long(name: str | None) -> bool:
    """Whether this id or name is too long for a record."""
    return name is not None and len(name.encode()) > NAME_BYTES_MAX


def checked_group_id(group_id: str) -> str:
    """The id; INVALID_GROUP_ID if it is empty or too long."""
    if not group_id or is_too_long(group_id):
        raise ApiError(ErrorCode.invalid_group_id, "The group id is empty, or too long.")
    return group_id
