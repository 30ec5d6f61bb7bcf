"""Putting a cleaned segment in the place of those that it was made of, so that a crash leaves either.

    NAME.log.cleaned, NAME.index.cleaned, ...   written and durable, and nothing yet
    NAME.log.swap, ...                          from here on it counts: recovery completes what follows
    the other old segments removed, the indexes renamed
    NAME.log                                    the old log file replaced last

NAME is the base offset of the first of the old segments. Whatever a crash left of indexes is put right by
recovery, which makes those again that are missing; but for the transaction index, which has its final name
if no other is left. Names and order are close to Kafka's (UnifiedLog's
replaceSegments), whose recovery understands what is left here.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing

from barnabas.storage.filesystem import File, FileSystem
from barnabas.storage.segments.segment import (
    LOG_SUFFIX,
    OFFSET_DIGITS,
    RELATIVE_OFFSET_MAX,
    SEGMENT_SUFFIXES,
    TRANSACTION_INDEX_SUFFIX,
)
from barnabas.storage.segments.segment_scan import scan_segment

CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"

_INDEX_SUFFIXES = tuple(suffix for suffix in SEGMENT_SUFFIXES if suffix != LOG_SUFFIX)


def publish(filesystem: FileSystem, directory: str, base_offset: int) -> File:
    """Makes the cleaned segment count; answers a handle of its log file, which is good for whatever follows.

    The indexes' names are durable before that of the log file, which says that they are there. After an
    OSError `take_back` is due, lest recovery ends the swap when the log has long gone on.
    """
    prefix = _prefix(directory, base_offset)
    for suffixes in (_INDEX_SUFFIXES, (LOG_SUFFIX,)):
        for suffix in suffixes:
            cleaned = f"{prefix}{suffix}{CLEANED_SUFFIX}"
            if suffix != TRANSACTION_INDEX_SUFFIX or filesystem.exists(cleaned):
                filesystem.rename(cleaned, f"{prefix}{suffix}{SWAP_SUFFIX}")
        filesystem.sync_directory(directory)
    return filesystem.open(f"{prefix}{LOG_SUFFIX}{SWAP_SUFFIX}", create=False)


def discard(filesystem: FileSystem, directory: str, base_offset: int) -> None:
    """Removes what there is of a cleaned segment that doesn't count, its log file first."""
    prefix = _prefix(directory, base_offset)
    for suffix in (LOG_SUFFIX, *_INDEX_SUFFIXES):
        for state in (SWAP_SUFFIX, CLEANED_SUFFIX):
            _remove_if_there(filesystem, f"{prefix}{suffix}{state}")


def take_back(filesystem: FileSystem, directory: str, base_offset: int) -> None:
    """Makes a cleaned segment not count any more that `publish` failed with: the old ones do, durably."""
    discard(filesystem, directory, base_offset)
    filesystem.sync_directory(directory)


def finish(filesystem: FileSystem, directory: str, base_offset: int, others: Iterable[int]) -> None:
    """Gives a published segment its names; `others` are the base offsets of the old ones but the first."""
    prefix = _prefix(directory, base_offset)
    for other in others:
        for suffix in SEGMENT_SUFFIXES:
            _remove_if_there(filesystem, _prefix(directory, other) + suffix)
    for suffix in _INDEX_SUFFIXES:
        if filesystem.exists(f"{prefix}{suffix}{SWAP_SUFFIX}"):
            filesystem.rename(f"{prefix}{suffix}{SWAP_SUFFIX}", prefix + suffix)
        elif suffix != TRANSACTION_INDEX_SUFFIX:
            _remove_if_there(filesystem, prefix + suffix)
    filesystem.sync_directory(directory)
    filesystem.rename(f"{prefix}{LOG_SUFFIX}{SWAP_SUFFIX}", prefix + LOG_SUFFIX)
    filesystem.sync_directory(directory)


def complete_swaps(filesystem: FileSystem, directory: str) -> None:
    """For recovery, before anything else: ends the swaps that a crash cut short. Raises OSError.

    What is left with one of the two suffixes then is of no use.
    """
    names = filesystem.list_directory(directory)
    base_offsets = [int(name.removesuffix(LOG_SUFFIX)) for name in names if _is_named(name, LOG_SUFFIX)]
    for name in names:
        if _is_named(name, LOG_SUFFIX + SWAP_SUFFIX):
            base_offset = int(name[:OFFSET_DIGITS])
            end_offset = _end_offset(filesystem, f"{directory}/{name}", base_offset)
            if end_offset is None:
                discard(filesystem, directory, base_offset)
            else:
                others = [other for other in base_offsets if base_offset < other < end_offset]
                finish(filesystem, directory, base_offset, others)


def _end_offset(filesystem: FileSystem, path: str, base_offset: int) -> int | None:
    """Behind the last batch; None if the file isn't whole, and so never was durable."""
    offsets = range(base_offset, base_offset + RELATIVE_OFFSET_MAX + 1)
    position, end_offset = 0, None
    with closing(filesystem.open(path, create=False)) as file:
        size_bytes = file.size()
        for batch in scan_segment(file, 0, size_bytes, offsets=offsets, checked_from=0):
            position = batch.position + len(batch.data)
            end_offset = batch.header.last_offset + 1
    return end_offset if position == size_bytes else None


def _prefix(directory: str, base_offset: int) -> str:
    return f"{directory}/{base_offset:0{OFFSET_DIGITS}d}"


def _is_named(name: str, suffix: str) -> bool:
    stem = name.removesuffix(suffix)
    return name.endswith(suffix) and len(stem) == OFFSET_DIGITS and stem.isdigit()


def _remove_if_there(filesystem: FileSystem, path: str) -> None:
    if filesystem.exists(path):
        filesystem.remove(path)
