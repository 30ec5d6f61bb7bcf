"""Hypothesis strategies for the parts of the encoders' results."""

from __future__ import annotations

from hypothesis import strategies as st

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.message_parts import NodeEndpoint
from barnabas.protocol.varint import Buffer

error_codes = st.sampled_from([int(code) for code in ErrorCode])
# Sometimes longer than 126 bytes, so that a compact length needs a second byte.
messages = st.none() | st.text(max_size=10) | st.text(min_size=100, max_size=150)
names = st.text(max_size=10) | st.text(min_size=100, max_size=150)


def _view(records: bytes) -> memoryview:
    return memoryview(records)


def numbers(bits: int) -> st.SearchStrategy[int]:
    """From -1, which means "none" in many fields, to the largest signed integer with one bit more."""
    return st.integers(-1, 2**bits - 1)


record_buffers: st.SearchStrategy[list[Buffer]] = st.lists(
    st.binary(min_size=1, max_size=100) | st.binary(min_size=1, max_size=100).map(_view),
    max_size=3,
)
endpoints = st.lists(
    st.builds(NodeEndpoint, numbers(31), names, numbers(31), messages),
    max_size=3,
)
leaders = st.none() | st.tuples(st.integers(0, 2**31 - 1), numbers(31))
