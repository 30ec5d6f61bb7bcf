"""A share group's backlogs, from looks at its partitions at a steady interval.

The lag at one moment says little: a partition that keeps up may have some hundred records in flight. So a
record counts once it has been unfinished for a whole interval: the backlog of a partition is the number of
records that were in the log at the last look, and are still waiting or in flight at this one. Partitions that
keep up have none, so nothing moves because of them. Pure.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeAlias
from uuid import UUID

from barnabas.coordinator.assignor.load import Backlogs
from barnabas.coordinator.share_group.interfaces import PartitionLoad

PartitionKey: TypeAlias = tuple[UUID, int]
LoadOf: TypeAlias = Callable[[PartitionKey, int | None], PartitionLoad | None]
"""`PartitionLoads.load_of` of one group."""


class LoadSamples(NamedTuple):
    """The result of a look."""

    end_offsets: dict[PartitionKey, int]
    """The ends of the logs."""
    backlogs: Backlogs | None
    """None at the first look."""


def look(last: LoadSamples | None, partitions: Iterable[PartitionKey], load_of: LoadOf) -> LoadSamples:
    """Look at the partitions, after the look `last`.

    A partition whose load is not known keeps its last values: its backlog waits until a member fetches.
    """
    end_offsets: dict[PartitionKey, int] = {}
    backlogs: dict[PartitionKey, int] = {}
    known = {} if last is None else last.end_offsets
    old = (last and last.backlogs) or {}
    for key in partitions:
        load = load_of(key, known.get(key))
        if load is not None:
            end_offsets[key] = load.end_offset
            backlogs[key] = load.unfinished_count if key in known else 0
        elif key in known:
            end_offsets[key] = known[key]
            backlogs[key] = old.get(key, 0)
    return LoadSamples(end_offsets, None if last is None else backlogs)


def whole_backlogs(partitions: Iterable[PartitionKey], load_of: LoadOf) -> Backlogs:
    """All unfinished records: the best guess before the second look."""
    loads = ((key, load_of(key, None)) for key in partitions)
    return {key: load.unfinished_count for key, load in loads if load is not None}
