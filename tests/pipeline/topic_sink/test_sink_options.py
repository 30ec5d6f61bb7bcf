"""The options and the schema of a write: one clear error for each wrong one."""

from __future__ import annotations

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampType,
)

from barnabas.pipeline.errors import OptionError, PipelineError
from barnabas.pipeline.topic_sink.columns import check_schema
from barnabas.pipeline.topic_sink.sink_options import Once, parse_sink_options
from barnabas.protocol.record_batch import Compression

NEEDED = {"servers": "localhost:9092"}


def test_missing_options_have_defaults() -> None:
    options = parse_sink_options(NEEDED)
    assert (options.topic, options.once, options.compression) == (None, Once.AUTO, Compression.NONE)
    assert (options.transactional_id_prefix, options.transaction_timeout_ms) == ("barnabas", 900_000)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"servers": ""}, "servers: is needed"),
        ({"topic": " "}, "topic: is empty"),
        ({"exactlyOnce": "twice"}, "exactlyOnce: 'twice' is not auto or transactions or header or off"),
        ({"compression": "brotli"}, "compression: 'brotli' is not none or gzip or snappy or lz4 or zstd"),
        ({"batchBytes": "0"}, "batchBytes: '0' is not a whole number from 1"),
        ({"transactionalIdPrefix": ""}, "transactionalIdPrefix: must have 1 to 128 characters"),
        ({"transactionTimeoutMs": "10"}, "transactionTimeoutMs: '10' is not a whole number from 1000"),
        ({"topics": "orders"}, "topics: there is no such option; did you mean topic"),
    ],
)
def test_a_wrong_option_is_an_error_that_names_it(given: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError) as error:
        parse_sink_options({**NEEDED, **given})
    assert str(error.value).startswith(message)


TYPES: dict[str, DataType] = {
    "int": IntegerType(),
    "bigint": LongType(),
    "string": StringType(),
    "binary": BinaryType(),
    "timestamp": TimestampType(),
    "headers": ArrayType(StructType().add("key", StringType()).add("value", BinaryType())),
}


def schema(**columns: str) -> StructType:
    made = StructType()
    for name, kind in columns.items():
        made = made.add(name, TYPES[kind])
    return made


def refusal(columns: dict[str, str], topic: str | None) -> str:
    """The message, empty if such rows can be written."""
    try:
        check_schema(schema(**columns), topic)
    except PipelineError as refused:
        return str(refused)
    return ""


@pytest.mark.parametrize(
    ("columns", "topic"),
    [
        ({"value": "string"}, "orders"),
        ({"value": "binary", "topic": "string"}, None),
        ({"key": "string", "value": "binary", "partition": "int", "timestamp": "timestamp"}, "orders"),
        ({"value": "binary", "offset": "bigint", "timestampType": "int", "deliveryCount": "int"}, "orders"),
        ({"value": "binary", "headers": "headers"}, "orders"),
    ],
)
def test_rows_of_known_columns_can_be_written(columns: dict[str, str], topic: str | None) -> None:
    assert refusal(columns, topic) == ""


@pytest.mark.parametrize(
    ("columns", "topic", "message"),
    [
        ({"key": "string"}, "orders", "There is no column value"),
        ({"value": "string"}, None, "topic: is needed"),
        ({"value": "int"}, "orders", "The column value is int; it has to be binary or string"),
        ({"value": "string", "colour": "int"}, "orders", "There is no column colour to write; there are key"),
        ({"value": "string", "partition": "bigint"}, "orders", "The column partition is bigint"),
    ],
)
def test_rows_of_wrong_columns_are_refused(columns: dict[str, str], topic: str | None, message: str) -> None:
    assert refusal(columns, topic).startswith(message)
