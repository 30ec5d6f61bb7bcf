"""The types are Spark's, exactly; constant columns stand where they are asked for."""

from __future__ import annotations

from typing import Any, cast

import pytest
from pyspark.sql.pandas import types

from barnabas.pipeline.decoding import (
    CONSTANT_COLUMNS,
    DECODED_COLUMNS,
    RecordDecoder,
    decoded_columns,
    with_constants,
)
from barnabas.pipeline.schema import SHARE_COLUMNS, spark_schema
from barnabas.protocol.records import encode_records
from tests.pipeline.decoding.batches import RECORDS, of_offsets
from tests.pipeline.decoding.decoders import DECODER_NAMES, DECODERS


@pytest.mark.parametrize("decoder", DECODERS, ids=DECODER_NAMES)
def test_the_columns_have_the_types_that_spark_asks_of_a_python_source(decoder: type[RecordDecoder]) -> None:
    columns = list(SHARE_COLUMNS)
    expected = cast("Any", types).to_arrow_schema(spark_schema(SHARE_COLUMNS, columns), timezone="UTC")
    decoding = decoder(decoded_columns(columns))
    empty = with_constants(decoding.take(), "orders", 3, columns)
    decoding.add(encode_records(RECORDS))
    full = with_constants(decoding.take(), "orders", 3, columns)
    assert expected.equals(empty.schema)
    assert expected.equals(full.schema)
    assert (empty.num_rows, full.num_rows) == (0, 3)


def test_every_column_of_a_record_is_decoded_or_constant() -> None:
    assert {*DECODED_COLUMNS, *CONSTANT_COLUMNS} == set(SHARE_COLUMNS)


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (
            ["partition", "offset", "topic"],
            {"partition": [3, 3], "offset": [5, 6], "topic": ["orders", "orders"]},
        ),
        (["offset"], {"offset": [5, 6]}),
        (["topic"], {"topic": ["orders", "orders"]}),
    ],
)
def test_constant_columns_stand_where_they_are_asked_for(columns: list[str], expected: object) -> None:
    decoder = RecordDecoder(decoded_columns(columns))
    decoder.add(of_offsets(5, 6))
    assert with_constants(decoder.take(), "orders", 3, columns).to_pydict() == expected
