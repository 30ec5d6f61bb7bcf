"""The digest of records: the same for the same records however they are cut, another for any other."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.pipeline.decoding.arrow import pa
from barnabas.pipeline.export.record_digest import RecordDigest
from tests.pipeline.export.records import batch

RECORDS = batch(0, 60)


def digest(*batches: Any) -> str:
    taken = RecordDigest()
    for one in batches:
        taken.add(one)
    return taken.hexdigest()


@given(st.lists(st.integers(0, 60), max_size=6))
def test_batches_may_be_cut_anywhere(cuts: list[int]) -> None:
    bounds = sorted({0, 60, *cuts})
    pieces = [RECORDS.slice(first, end - first) for first, end in pairwise(bounds)]
    assert digest(*pieces) == digest(RECORDS)


def changed(column: str, values: list[Any]) -> Any:
    index = RECORDS.schema.get_field_index(column)
    return RECORDS.set_column(
        index, RECORDS.schema.field(column), pa.array(values, RECORDS.column(column).type)
    )


def values(column: str) -> list[Any]:
    found: list[Any] = RECORDS.column(column).to_pylist()
    return found


OTHERS: dict[str, Any] = {
    "another key": changed("key", [b"other", *values("key")[1:]]),
    "an empty key for none": changed("key", [b"", *values("key")[1:]]),
    "a byte that moved into the next value": changed(
        "value", [*values("value")[:1], b"vv", b"v", *values("value")[3:]]
    ),
    "another time": changed("timestamp", [values("timestamp")[1], *values("timestamp")[1:]]),
    "another header": changed("headers", [[{"key": "h", "value": b""}], *values("headers")[1:]]),
    "a header that moved to the next record": changed(
        "headers", [*values("headers")[:1], [], values("headers")[1] * 3, *values("headers")[3:]]
    ),
    "another order": pa.concat_batches([RECORDS.slice(1, 1), RECORDS.slice(0, 1), RECORDS.slice(2)]),
    "one less": RECORDS.slice(1),
    "one twice": pa.concat_batches([RECORDS.slice(0, 1), RECORDS]),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS.keys())
def test_other_records_have_another_digest(other: Any) -> None:
    assert digest(other) != digest(RECORDS)


def test_offsets_do_not_count() -> None:
    assert digest(changed("offset", list(range(60)))) == digest(RECORDS)
