"""Plans a read: the slices of the segments, and their offsets. Runs on the driver, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from barnabas.pipeline.errors import OptionError
from barnabas.pipeline.filters import LEAST, MOST, Kept
from barnabas.pipeline.log_source.directories import PartitionFolder, find_partitions
from barnabas.pipeline.log_source.log_options import EARLIEST, LATEST, LogOptions, Place
from barnabas.pipeline.log_source.offsets_by_time import offset_for_time
from barnabas.pipeline.log_source.segment_slice import OFFSET_MAX
from barnabas.pipeline.log_source.slice_reader import LogTask
from barnabas.pipeline.log_source.slicing import LogBounds, log_end_offset, slice_partition
from barnabas.pipeline.log_source.transactions import Transactions, read_transactions

TASKS_MAX: Final = 100_000
"""A read of more slices is refused, because Spark's driver holds them all."""

_ALL_TIMES = (LEAST, MOST)
_NO_TRANSACTIONS = Transactions((), OFFSET_MAX)


def plan(options: LogOptions, kept: Kept) -> list[LogTask]:
    """The tasks, partition by partition in the log's order; none if nothing matches.

    Raises `OptionError` for topics, partitions and offsets that aren't there, or too small a `sliceBytes`;
    `LogFileError` for files that cannot be read.
    """
    folders = find_partitions(options.paths, options.topics)
    _check_named(folders, options.starting_offsets, "startingOffsets")
    _check_named(folders, options.ending_offsets, "endingOffsets")
    tasks: list[LogTask] = []
    for folder in folders:
        if kept.has_partition(folder.topic, folder.partition):
            tasks += _plan_partition(folder, options, kept)
        if len(tasks) > TASKS_MAX:
            raise OptionError("sliceBytes", f"makes more than {TASKS_MAX} tasks; make it larger")
    return tasks


def _check_named(folders: list[PartitionFolder], place: Place, option: str) -> None:
    if isinstance(place, str):
        return
    known = {(folder.topic, folder.partition) for folder in folders}
    for topic, partition in place:
        if (topic, partition) not in known:
            raise OptionError(option, f"there is no partition {partition} of topic {topic!r} to read")


def _plan_partition(folder: PartitionFolder, options: LogOptions, kept: Kept) -> Iterator[LogTask]:
    transactions = read_transactions(folder) if options.is_committed else _NO_TRANSACTIONS
    first, end = _bounds(folder, options)
    first = max(first, kept.offset_range[0])
    end = min(end, transactions.last_stable_offset, kept.offset_range[1] + 1)
    if first >= end:
        return
    times = kept.time_range_ms
    wanted = LogBounds(first, end, None if times[0] == LEAST else times[0])
    slices = slice_partition(folder, wanted, options.slice_bytes, tolerant=options.skips_damage)
    ends = [following.first_offset for following in slices[1:]]
    for piece, slice_end in zip(slices, [*ends, end], strict=False):
        yield LogTask(
            piece=piece,
            columns=options.columns,
            offset_range=(first, min(end - 1, OFFSET_MAX)),
            time_range_ms=None if times == _ALL_TIMES else times,
            aborted=transactions.aborted_between(piece.first_offset, end if slice_end < 0 else slice_end),
            skips_damage=options.skips_damage,
        )


def _bounds(folder: PartitionFolder, options: LogOptions) -> tuple[int, int]:
    """The offsets to read, the end exclusive, before filters."""
    start, end = folder.log_start_offset, OFFSET_MAX
    if options.starting_time_ms is not None:
        found = offset_for_time(folder, options.starting_time_ms)
        start = OFFSET_MAX if found is None else found
    else:
        start = _offset_of(folder, options.starting_offsets, "startingOffsets", EARLIEST, start)
    if options.ending_time_ms is not None:
        found = offset_for_time(folder, options.ending_time_ms)
        end = OFFSET_MAX if found is None else found
    else:
        end = _offset_of(folder, options.ending_offsets, "endingOffsets", LATEST, end)
    return start, end


def _offset_of(folder: PartitionFolder, place: Place, option: str, default: int, at_default: int) -> int:
    """The offset in the option for the partition; a partition that it doesn't name is read whole."""
    if isinstance(place, str):
        offset = EARLIEST if place == "earliest" else LATEST
    else:
        offset = place.get((folder.topic, folder.partition), default)
    if offset == default:
        return at_default
    end_offset = log_end_offset(folder)
    if offset == EARLIEST:
        return folder.log_start_offset
    if offset == LATEST:
        return end_offset
    if not folder.log_start_offset <= offset <= end_offset:
        has = f"it has offsets from {folder.log_start_offset} to {end_offset} (exclusive)"
        raise OptionError(option, f"{folder.name} has no offset {offset}; {has}")
    return offset
