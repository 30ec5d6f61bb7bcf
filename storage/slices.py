"""Thousands of logs are looked at in slices, between which the loop serves others."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

_T = TypeVar("_T")

SLICE_SIZE = 200
"""Logs that are looked at in a millisecond or so."""


def in_slices(items: Iterable[_T]) -> Iterator[list[_T]]:
    """Each slice's items are asked for when its turn comes."""
    iterator = iter(items)
    while some := list(islice(iterator, SLICE_SIZE)):
        yield some
