"""Bytes to feed a target with: any bytes, and valid data with a few bytes changed, cut off or repeated."""

from collections.abc import Sequence

from hypothesis import strategies as st

BYTES_MAX = 600


def inputs(seeds: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    """Any bytes, or a seed with faults."""
    anything = st.binary(max_size=BYTES_MAX)
    return st.one_of(anything, st.sampled_from(seeds).flatmap(_damaged)) if seeds else anything


def _damaged(seed: bytes) -> st.SearchStrategy[bytes]:
    position = st.integers(0, len(seed) - 1)
    flips = st.lists(st.tuples(position, st.integers(0, 255)), max_size=4)
    return st.builds(_apply, st.just(seed), flips, st.integers(0, len(seed)), st.binary(max_size=20))


def _apply(seed: bytes, flips: list[tuple[int, int]], end: int, tail: bytes) -> bytes:
    data = bytearray(seed)
    for position, value in flips:
        data[position] = value
    return bytes(data[:end]) + tail
