"""The groups of one type, by id."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, Protocol, TypeVar

from barnabas.protocol.errors import ApiError, ErrorCode


class Group(Protocol):
    """A group of any type."""

    @property
    def group_id(self) -> str: ...

    @property
    def id_hash(self) -> int:
        """The absolute of the id's hash, which decides the partition of its records."""
        ...


GroupT = TypeVar("GroupT", bound=Group)


class GroupRegistry(Generic[GroupT]):
    """Groups of one type. A group is kept from the replay of its first record until that of its tombstone."""

    def __init__(
        self, group_type: str, *, max_groups: int, other_group_type: Callable[[str], str | None]
    ) -> None:
        """`other_group_type` returns the type of the group with that id if it is another one, or None.
        `group_type` and `group.<type>.max.groups` stand in messages.
        """
        self._group_type = group_type
        self._max_groups = max_groups
        self._other_group_type = other_group_type
        self._groups: dict[str, GroupT] = {}

    def __iter__(self) -> Iterator[GroupT]:
        return iter(self._groups.values())

    def get(self, group_id: str) -> GroupT | None:
        return self._groups.get(group_id)

    def existing(self, group_id: str) -> GroupT:
        """The group; GROUP_ID_NOT_FOUND if it does not exist or is of another type."""
        group = self._groups.get(group_id)
        if group is not None:
            return group
        is_missing = self._other_group_type(group_id) is None
        problem = "not found" if is_missing else f"is not a {self._group_type} group"
        raise ApiError(ErrorCode.group_id_not_found, f"Group {group_id} {problem}.")

    def is_of_another_type(self, group_id: str) -> bool:
        return group_id not in self._groups and self._other_group_type(group_id) is not None

    def check_room(self, refusal: ErrorCode = ErrorCode.group_max_size_reached) -> None:
        """`refusal` if the type's `max.groups` is reached. Kafka has no code for it."""
        if len(self._groups) >= self._max_groups:
            setting = f"group.{self._group_type}.max.groups"
            message = f"There are {self._max_groups} {self._group_type} groups already ({setting})."
            raise ApiError(refusal, message)

    def of_partition(self, log_partition: int, partition_count: int) -> list[GroupT]:
        """The groups whose records are in this one of `partition_count` partitions."""
        return [group for group in self._groups.values() if group.id_hash % partition_count == log_partition]

    def drop(self, group: GroupT) -> None:
        """Forget a group."""
        del self._groups[group.group_id]
