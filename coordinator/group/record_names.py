"""Which ids and names coordinators' records can have as keys."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.errors import ApiError, ErrorCode

NAME_BYTES_MAX: Final = 2**15 - 1
"""Keys have no place for longer ones, which newer versions of the requests do."""


def is_too_long(name: str | None) -> bool:
    """Whether no record has a place for this id or name."""
    return name is not None and len(name.encode()) > NAME_BYTES_MAX


def checked_group_id(group_id: str) -> str:
    """The id; INVALID_GROUP_ID if no group can have it."""
    if not group_id or is_too_long(group_id):
        raise ApiError(ErrorCode.invalid_group_id, "The group id is empty, or too long.")
    return group_id
