"""Generated bodies, well-formed and damaged: both walkers return the same."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.record_walk import RecordRules
from tests.pipeline.decoding.batches import damages
from tests.protocol.record_walk.walkers import NOW_MS, compare_walkers, record

times_ms = st.one_of(
    st.integers(-10, 10),
    st.sampled_from([NOW_MS, -NOW_MS, 2**63 - 1, -(2**63), 2**63 - 1 - NOW_MS, -(2**62)]),
)
fields = st.none() | st.binary(max_size=90)
headers = st.sampled_from([b"\0", b"\2\2n\1", b"\4\0\1\2x\2y", b"\2\1\1", b"\1", b"\0\0"])


@st.composite
def bodies(draw: st.DrawFn) -> tuple[bytes, int]:
    drawn = draw(st.lists(st.tuples(times_ms, fields, fields, headers), max_size=6))
    shift = draw(st.sampled_from([0, 0, 0, 1]))
    body = b"".join(
        record(index + shift * (index > 2), time_ms, key, value, pairs)
        for index, (time_ms, key, value, pairs) in enumerate(drawn)
    )
    return body, len(drawn)


@st.composite
def rules(draw: st.DrawFn) -> RecordRules:
    times = draw(st.none() | st.tuples(times_ms, times_ms))
    return RecordRules(draw(st.booleans()), times, draw(st.sampled_from([2**31 - 1, 100, 20])))


@given(bodies(), rules(), times_ms)
def test_both_walkers_agree_on_records(
    drawn: tuple[bytes, int], wanted: RecordRules, base_timestamp_ms: int
) -> None:
    compare_walkers(*drawn, wanted, base_timestamp_ms)


@given(bodies().flatmap(lambda drawn: damages(drawn[0])), st.integers(-1, 9), rules())
def test_both_walkers_agree_on_damaged_records(body: bytes, record_count: int, wanted: RecordRules) -> None:
    compare_walkers(body, record_count, wanted)


@given(st.binary(max_size=200), st.integers(-1, 60))
def test_both_walkers_agree_on_any_bytes(body: bytes, record_count: int) -> None:
    compare_walkers(body, record_count)
