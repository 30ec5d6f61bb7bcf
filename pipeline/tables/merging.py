"""Plans which small files are merged together. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

FileT = TypeVar("FileT")

SMALL_SHARE: Final = 2
"""A file is small if this number of files of its size fit into the target."""


@dataclass(frozen=True, slots=True)
class Merge(Generic[FileT]):
    """Small files of one partition, and the number of files to make of them."""

    files: tuple[FileT, ...]
    output_count: int


def plan_merges(files: Iterable[tuple[Hashable, int, FileT]], target_bytes: int) -> list[Merge[FileT]]:
    """The merges for files given as (partition, size, file): one for each partition with enough small files.

    Files are only rewritten if that makes them fewer: a second run finds nothing to do.
    """
    small: dict[Hashable, list[tuple[int, FileT]]] = {}
    for partition, size_bytes, file in files:
        if size_bytes * SMALL_SHARE <= target_bytes:
            small.setdefault(partition, []).append((size_bytes, file))
    merges: list[Merge[FileT]] = []
    for found in small.values():
        total_bytes = sum(size_bytes for size_bytes, _ in found)
        output_count = max(1, -(-total_bytes // target_bytes))
        if output_count < len(found):
            merges.append(Merge(tuple(file for _, file in found), output_count))
    return merges
