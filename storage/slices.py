"""Walks over thousands of logs in slices, between which the loop serves others."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

_T = TypeVar("_T")

SLICE_SIZE = 200
"""Logs of one slice: a check of each takes about a millisecond together."""


def in_slices(items: Iterable[_T]) -> Iterator[list[_T]]:
    """The items in slices; a slice takes its items from the iterator when its turn comes."""
    iterator = iter(items)
    while some := list(islice(iterator, SLICE_SIZE)):
        yield some
