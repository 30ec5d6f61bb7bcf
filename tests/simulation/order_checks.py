"""The order of keys inside the broker: the records that its leaders regard as held, by the producers' keys;
and the priorities that they know.

The check of keys does not look at the leader's own order (`KeyOrder`), except for the setting in force.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from barnabas.protocol.delivery_state import PendingAcknowledgement
from barnabas.share.leader.share_partition_leader import SharePartitionLeader
from barnabas.share.partition.key_order import KeyOrder
from barnabas.share.partition.window import ACQUIRED, AVAILABLE
from tests.simulation.model import Violation
from tests.simulation.priority_checks import known_priorities
from tests.simulation.world import World

# pyright: reportPrivateUsage=false


class _Unfinished(NamedTuple):
    """A record that is available or held."""

    offset: int
    owner: str | None
    is_pending: bool
    """Whether its acknowledgement is being recorded, or waits for a transaction."""


def check_order(world: World, leader: SharePartitionLeader) -> None:
    """The held records of a key are its first unfinished ones, of one member, and few enough.

    An available record before a held one was released, so the broker had to take back the held one; except
    while its acknowledgement is being recorded, or waits for a transaction. Such a record is still held.
    """
    order = leader.core.window.keys
    if order is None:
        return
    if order.priorities is not None:
        _check_known_priorities(world, leader, order)
    if not order.key_run_max:
        return
    for key, records in _by_key(world, leader).items():
        held = [one for one in records if one.owner is not None]
        name = f"{leader.group_id}: the key {key!r} has the records {records}"
        if len(held) > order.run_max or len({one.owner for one in held}) > 1:
            raise Violation(f"{name}, and too many are held")
        first_available = next((one.offset for one in records if one.owner is None), None)
        if any(
            first_available is not None and one.offset > first_available and not one.is_pending
            for one in held
        ):
            raise Violation(f"{name}, and a later one than {first_available} is held")


def _check_known_priorities(world: World, leader: SharePartitionLeader, order: KeyOrder) -> None:
    """Of all unfinished records whose priorities the leader has read, it knows them."""
    model = world.model.partition(leader.key.topic_id_partition)
    known = known_priorities(order)
    for value, offset in model.offset_by_value.items():
        sent = world.priorities.priority_of(value)
        if offset in order._key_of and known.get(offset, 0) != sent:
            raise Violation(
                f"{leader.group_id}: {offset} has the priority {sent}, and its leader knows it with "
                f"{known.get(offset, 0)}"
            )


def _by_key(world: World, leader: SharePartitionLeader) -> dict[bytes, list[_Unfinished]]:
    """The unfinished records with known keys, ascending; without those of large batches."""
    model = world.model.partition(leader.key.topic_id_partition)
    value_at = {offset: value for value, offset in model.offset_by_value.items()}
    by_key: dict[bytes, list[_Unfinished]] = {}
    for one in _unfinished(leader):
        value = value_at.get(one.offset)
        key = world.keys.key_of(value)
        if key is not None and world.keys.large_batch_of(value) is None:
            by_key.setdefault(key, []).append(one)
    return by_key


def _unfinished(leader: SharePartitionLeader) -> Iterator[_Unfinished]:
    window = leader.core.window
    for _, run in window.runs_between(window.spso, window.speo - 1):
        if run.state is ACQUIRED or run.state is AVAILABLE:
            condition = run.condition
            waits = isinstance(condition, PendingAcknowledgement)
            owner = condition.member if isinstance(condition, PendingAcknowledgement) else run.owner
            for offset in range(max(run.first_offset, window.spso), run.last_offset + 1):
                yield _Unfinished(offset, owner, run.pending or waits)
