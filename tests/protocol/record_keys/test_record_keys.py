"""Hashes of keys, and reduced batches: both modules return the same. The vectors are hashes of Kafka's
`Utils.murmur2`.
"""

from __future__ import annotations

from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.record_keys import NO_KEY, KeyHashes, _native, _python
from barnabas.protocol.varint import RecordFormatError
from tests.pipeline.decoding.batches import damages
from tests.protocol.record_walk.walkers import record

MODULES = [_python, _native]
VECTORS = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}

Outcome = KeyHashes | bytes | str
keys = st.none() | st.binary(max_size=40)
both_modules = pytest.mark.parametrize("module", MODULES, ids=["python", "native"])


def body_of(keys: list[bytes | None], deltas: list[int] | None = None) -> bytes:
    return b"".join(record(delta, key=key) for delta, key in zip(deltas or range(len(keys)), keys))  # noqa: B905


def hashes_of(module: ModuleType, body: bytes, record_count: int) -> Outcome:
    try:
        found: KeyHashes = module.key_hashes(body, record_count)
    except RecordFormatError as error:
        return str(error)
    return found


def kept_of(module: ModuleType, body: bytes, record_count: int, offset_deltas: list[int]) -> Outcome:
    try:
        kept: bytes = module.kept_records(body, record_count, offset_deltas)
    except RecordFormatError as error:
        return str(error)
    return kept


@both_modules
@pytest.mark.parametrize(("key", "signed"), VECTORS.items())
def test_a_key_is_hashed_as_java_does(module: ModuleType, key: bytes, signed: int) -> None:
    assert module.key_hash(key) == signed & 0x7FFFFFFF


@given(st.binary(max_size=40))
def test_both_modules_hash_a_key_alike(key: bytes) -> None:
    assert _native.key_hash(key) == _python.key_hash(key)


@both_modules
def test_each_record_has_its_offset_and_the_hash_of_its_key(module: ModuleType) -> None:
    body = body_of([b"abc", None, b"", b"abc"], [0, 3, 4, 9])
    hashes = [479470107, NO_KEY, module.key_hash(b""), 479470107]
    assert module.key_hashes(body, 4) == ([0, 3, 4, 9], hashes)


@both_modules
def test_a_reduced_batch_keeps_the_bytes_of_its_records(module: ModuleType) -> None:
    keys: list[bytes | None] = [b"a", b"b", None, b"d"]
    body = body_of(keys, [0, 2, 5, 6])
    assert module.kept_records(body, 4, [2, 6]) == record(2, key=b"b") + record(6, key=b"d")
    assert module.kept_records(memoryview(body), 4, [0, 2, 5, 6]) == body
    assert module.kept_records(body, 4, []) == b""


@both_modules
def test_a_batch_cannot_be_reduced_to_a_record_that_it_lacks(module: ModuleType) -> None:
    with pytest.raises(RecordFormatError, match="Record 3 of 3"):
        module.kept_records(body_of([b"a", b"b", b"c"], [0, 2, 3]), 3, [0, 1])


@both_modules
def test_bytes_behind_the_last_record_are_an_error(module: ModuleType) -> None:
    with pytest.raises(RecordFormatError, match="after the last of 1"):
        module.key_hashes(body_of([b"a", b"b"]), 1)


@given(
    st.lists(keys, max_size=6).map(body_of).flatmap(damages), st.integers(-1, 8), st.sets(st.integers(0, 6))
)
def test_both_modules_agree_on_damaged_records(body: bytes, record_count: int, deltas: set[int]) -> None:
    wanted = sorted(deltas)
    assert hashes_of(_native, body, record_count) == hashes_of(_python, body, record_count)
    assert kept_of(_native, body, record_count, wanted) == kept_of(_python, body, record_count, wanted)


@given(st.binary(max_size=200), st.integers(-1, 60))
def test_both_modules_agree_on_any_bytes(body: bytes, record_count: int) -> None:
    assert hashes_of(_native, body, record_count) == hashes_of(_python, body, record_count)
    assert kept_of(_native, body, record_count, [0, 1]) == kept_of(_python, body, record_count, [0, 1])
