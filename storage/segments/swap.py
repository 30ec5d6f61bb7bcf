"""Replaces old segments by the cleaned segment that was made of them, so that a crash leaves either.

    NAME.log.cleaned, NAME.index.cleaned, ...   written and durable; the old segments count
    NAME.log.swap, ...                          the new segment counts: recovery completes the next steps
    the other old segments removed, the indexes renamed
    NAME.log                                    the old log file replaced last

NAME is the base offset of the first old segment. Recovery rebuilds indexes that a crash has lost, except the
transaction index, which cannot be told from one that was never needed. It is renamed before the log file, so
it has its final name when no `.swap` file is left. Names and order are close to Kafka's (UnifiedLog's
replaceSegments), whose recovery understands the intermediate states.
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
    """Makes the cleaned segment count; returns a handle of its log file, which stays valid when it is
    renamed.

    The indexes' names are durable before the log file's name, which marks them as complete. After an OSError
    the caller must call `take_back`, or recovery would complete the swap after later changes of the log.
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
    """Removes the existing files of a cleaned segment that does not count, its log file first."""
    prefix = _prefix(directory, base_offset)
    for suffix in (LOG_SUFFIX, *_INDEX_SUFFIXES):
        for state in (SWAP_SUFFIX, CLEANED_SUFFIX):
            _remove_if_there(filesystem, f"{prefix}{suffix}{state}")


def take_back(filesystem: FileSystem, directory: str, base_offset: int) -> None:
    """Undoes a failed `publish` durably: the old segments count."""
    discard(filesystem, directory, base_offset)
    filesystem.sync_directory(directory)


def finish(filesystem: FileSystem, directory: str, base_offset: int, others: Iterable[int]) -> None:
    """Gives a published segment its final names; `others` are the old base offsets except the first."""
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
    """The first step of recovery: completes the swaps that a crash interrupted. Raises OSError.

    Files that still have one of the two suffixes then are useless.
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
    """The end of the last batch (exclusive); None for an incomplete file, which was never durable."""
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
