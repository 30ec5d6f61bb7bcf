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
    """The id of a group with members or share state; INVALID_GROUP_ID if it is empty or too long."""
    if not group_id:
        raise ApiError(ErrorCode.invalid_group_id, "The group id is empty.")
    return storable_group_id(group_id)


def storable_group_id(group_id: str) -> str:
    """The id of a group with committed offsets; INVALID_GROUP_ID if it is too long.

    It may be empty: consumers without a group commit under that id, and Kafka serves it.
    """
    if is_too_long(group_id):
        raise ApiError(ErrorCode.invalid_group_id, "The group id is too long.")
    return group_id
