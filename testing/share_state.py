"""The states of a share group's records, and their difference to the expected ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, cast

from barnabas.testing.control import Control, quoted

STATES: Final = ("passed", "new", "available", "acquired", "acknowledged", "archiving", "archived")
"""The names of the states. The group is done with a passed record, and keeps no state of it any more."""


class RecordState(NamedTuple):
    """The state of one record for a share group."""

    topic: str
    partition: int
    offset: int
    state: str
    """One of `STATES`."""
    deliveries: int
    """-1 if it is unknown."""
    member: str | None
    """The member that holds the record."""
    lock_left_ms: int | None
    """The time for which it may hold the record."""
    wait: str | None
    """The reason why no member gets the record now, such as "due" after a release with a delay."""

    def __str__(self) -> str:
        parts = [self.state]
        if self.deliveries > 0:
            parts.append("1 delivery" if self.deliveries == 1 else f"{self.deliveries} deliveries")
        if self.member is not None and self.lock_left_ms is not None:
            parts.append(f"held by {self.member} for {self.lock_left_ms / 1000:.1f} s more")
        if self.wait is not None:
            parts.append(f"waits: {self.wait}")
        return ", ".join(parts)


def read_share_state(control: Control, group: str) -> list[RecordState]:
    """The states of all records in the partitions that the group reads, by topic, partition and offset.

    Raises ControlError for an unknown group.
    """
    ranges = cast("list[dict[str, object]]", control.ask("GET", f"share-state/{quoted(group)}")["ranges"])
    return [
        RecordState(
            cast("str", share_range["topic"]),
            cast("int", share_range["partition"]),
            offset,
            cast("str", share_range["state"]),
            cast("int", share_range["deliveries"]),
            cast("str | None", share_range["member"]),
            cast("int | None", share_range["lock_left_ms"]),
            cast("str | None", share_range["wait"]),
        )
        for share_range in ranges
        for offset in range(
            cast("int", share_range["first_offset"]), cast("int", share_range["last_offset"]) + 1
        )
    ]


def check_states(expected: Mapping[int, str]) -> None:
    """ValueError for a name that is no state."""
    for state in expected.values():
        if state not in STATES:
            raise ValueError(f"{state!r} is no state of a record. The states are {', '.join(STATES)}.")


def difference(found: Sequence[RecordState], expected: Mapping[int, str]) -> str | None:
    """The difference as lines with - (expected) and + (found); None if there is none."""
    by_offset = {record.offset: record for record in found}
    lines: list[str] = []
    for offset in sorted({*by_offset, *expected}):
        state = by_offset.get(offset)
        if offset not in expected:
            lines.append(f"+ offset {offset}: {state}")
        elif state is None:
            lines.append(f"- offset {offset}: {expected[offset]}")
        elif state.state == expected[offset]:
            lines.append(f"  offset {offset}: {state}")
        else:
            lines += [f"- offset {offset}: {expected[offset]}", f"+ offset {offset}: {state}"]
    return "\n".join(lines) if any(not line.startswith(" ") for line in lines) else None
