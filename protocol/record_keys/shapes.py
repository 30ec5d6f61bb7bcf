"""The results of both modules."""

from __future__ import annotations

from typing import Final, NamedTuple

NO_KEY: Final = -1
"""Stands for the hash of a record without a key. An empty key has a hash."""


class KeyHashes(NamedTuple):
    """The records of a batch, in its order: two lists of equal length."""

    offset_deltas: list[int]
    """Each record's offset, counted from the batch's base offset; compaction leaves gaps between them."""
    hashes: list[int]
    """Each record's hash, or NO_KEY."""
