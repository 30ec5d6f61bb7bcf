"""Timestamps and headers of records: both modules return the same."""

from __future__ import annotations

from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.record_facts import RecordFacts, _native, _python
from barnabas.protocol.varint import RecordFormatError, zigzag_varint
from tests.pipeline.decoding.batches import damages
from tests.protocol.record_walk.walkers import record

Header = tuple[bytes, bytes | None]

NAME = b"due"
names = st.sampled_from([NAME, b"", b"du", b"due2"])
headers = st.lists(st.tuples(names, st.none() | st.binary(max_size=12)), max_size=4)
both_modules = pytest.mark.parametrize("module", [_python, _native], ids=["python", "native"])


def encoded(headers: list[Header]) -> bytes:
    parts = [zigzag_varint(len(headers))]
    for name, value in headers:
        parts += [zigzag_varint(len(name)), name, zigzag_varint(-1 if value is None else len(value))]
        parts.append(value or b"")
    return b"".join(parts)


def with_headers(*found: Header, key: bytes | None = b"k", value: bytes | None = b"v") -> bytes:
    return record(key=key, value=value, headers=encoded(list(found)))


def facts_of(module: ModuleType, body: bytes, record_count: int, name: bytes | None) -> RecordFacts | str:
    try:
        found: RecordFacts = module.record_facts(body, record_count, name)
    except RecordFormatError as error:
        return str(error)
    return found


@both_modules
def test_each_record_has_its_offset_its_timestamp_and_the_wanted_header(module: ModuleType) -> None:
    body = (
        record(0, 0, headers=encoded([(NAME, b"1")]))
        + record(3, -70, None, None, headers=encoded([(b"x", b"2")]))
        + record(4, 2**40, b"k" * 300, b"v" * 300, headers=encoded([(b"x", None), (NAME, b"3")]))
    )
    assert module.record_facts(body, 3, NAME) == ([0, 3, 4], [0, -70, 2**40], [b"1", None, b"3"])
    assert module.record_facts(memoryview(body), 3, NAME) == module.record_facts(body, 3, NAME)


@both_modules
def test_no_header_is_read_if_none_is_wanted(module: ModuleType) -> None:
    body = record(0, 5, headers=b"\x7f") + record(1, 6)
    assert module.record_facts(body, 2, None) == ([0, 1], [5, 6], [None, None])
    with pytest.raises(RecordFormatError, match="Record 0 of 2"):
        module.record_facts(body, 2, NAME)


@both_modules
@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([(NAME, b"1"), (NAME, b"2")], b"2"),
        ([(NAME, b"1"), (NAME, None)], None),
        ([(NAME, b"")], b""),
        ([(b"", b"1"), (b"due2", b"1"), (b"du", b"1"), (b"DUE", b"1")], None),
        ([], None),
    ],
)
def test_the_last_header_of_the_name_counts(
    module: ModuleType, found: list[Header], expected: bytes | None
) -> None:
    assert module.record_facts(with_headers(*found), 1, NAME).header_values == [expected]


@both_modules
def test_a_name_may_be_empty(module: ModuleType) -> None:
    assert module.record_facts(with_headers((b"", b"7"), (NAME, b"8")), 1, b"").header_values == [b"7"]


@both_modules
def test_bytes_behind_the_last_record_are_an_error(module: ModuleType) -> None:
    with pytest.raises(RecordFormatError, match="after the last of 1"):
        module.record_facts(record() + record(), 1, None)


@given(
    st.lists(headers, max_size=5).map(lambda lists: b"".join(with_headers(*one) for one in lists)),
    st.integers(-1, 6),
    st.none() | names,
)
def test_both_modules_agree_on_headers(body: bytes, record_count: int, name: bytes | None) -> None:
    assert facts_of(_native, body, record_count, name) == facts_of(_python, body, record_count, name)


@given(
    st.lists(headers, max_size=4)
    .map(lambda lists: b"".join(with_headers(*one) for one in lists))
    .flatmap(damages),
    st.integers(-1, 6),
    st.none() | names,
)
def test_both_modules_agree_on_damaged_records(body: bytes, record_count: int, name: bytes | None) -> None:
    assert facts_of(_native, body, record_count, name) == facts_of(_python, body, record_count, name)


@given(st.binary(max_size=200), st.integers(-1, 60), st.none() | names)
def test_both_modules_agree_on_any_bytes(body: bytes, record_count: int, name: bytes | None) -> None:
    assert facts_of(_native, body, record_count, name) == facts_of(_python, body, record_count, name)
