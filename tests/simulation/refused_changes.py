"""Changes by administrators are refused for records whose acknowledgements wait for an open transaction."""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.protocol.identity import TopicIdPartition
from tests.simulation.model import Violation
from tests.simulation.transaction_model import Transaction
from tests.simulation.world import World


def open_transactions(
    world: World, group_id: str, partitions: Iterable[TopicIdPartition], offsets: Iterable[int] | None = None
) -> list[Transaction]:
    """The transactions, certainly open, for which acknowledgements of a group wait: of these records, or of
    all in these partitions.
    """
    clock = world.machine.clock
    wall_ms, clock_changes = clock.wall_ms(), clock.change_count
    return [
        transaction
        for partition in partitions
        for transaction in world.pending(group_id, partition).open_transactions(
            offsets, wall_ms=wall_ms, clock_changes=clock_changes
        )
    ]


def check_ended(world: World, waiting: Iterable[Transaction], change: str) -> None:
    """The change has succeeded, and these transactions were open when it was requested."""
    clock = world.machine.clock
    for transaction in waiting:
        if transaction.is_surely_open(clock.wall_ms(), clock.change_count):
            raise Violation(f"an administrator {change}, but acknowledgements wait for {transaction.name}")
