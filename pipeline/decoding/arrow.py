"""Arrow's side of decoding: the types of the columns, arrays around decoded buffers, constant columns.

The types are exactly those that Spark requires from Python sources for the columns of `schema`. PyArrow has
no type information, so `pa` is `Any`.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final

from barnabas.pipeline.columnar import Array, RecordBatch
from barnabas.pipeline.errors import PipelineError, install_hint


def _load() -> Any:
    try:
        return import_module("pyarrow")
    except ImportError as error:
        raise PipelineError(f"PyArrow is not installed: {install_hint('spark')}") from error


pa: Final[Any] = _load()

_HEADER: Final[Any] = pa.struct([("key", pa.string()), ("value", pa.binary())])
_TYPES: Final[dict[str, Any]] = {
    "key": pa.binary(),
    "value": pa.binary(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestampType": pa.int32(),
    "headers": pa.list_(pa.field("element", _HEADER)),
    "deliveryCount": pa.int32(),
}
_CONSTANT_TYPES: Final[dict[str, Any]] = {"topic": pa.string(), "partition": pa.int32()}

DECODED_COLUMNS: Final = tuple(_TYPES)
"""The columns that a decoder builds."""
CONSTANT_COLUMNS: Final = tuple(_CONSTANT_TYPES)
"""The columns that are the same in all records of a partition: `with_constants` adds them."""


def decoded_columns(columns: Sequence[str]) -> list[str]:
    """The columns of a source that a decoder builds."""
    return [column for column in columns if column not in CONSTANT_COLUMNS]


def with_constants(batch: RecordBatch, topic: str, partition: int, columns: Sequence[str]) -> RecordBatch:
    """`batch` with the columns `topic` and `partition` if `columns` names them, in the order of `columns`."""
    constants = {"topic": topic, "partition": partition}
    arrays = [
        pa.repeat(pa.scalar(constants[column], _CONSTANT_TYPES[column]), batch.num_rows)
        if column in constants
        else batch.column(column)
        for column in columns
    ]
    return record_batch(columns, arrays, batch.num_rows)


def record_batch(columns: Sequence[str], arrays: Sequence[Array], row_count: int) -> RecordBatch:
    """The arrays as one batch; it has `row_count` rows even without columns."""
    if not arrays:
        rows = pa.StructArray.from_buffers(pa.struct([]), row_count, [None])
        empty: RecordBatch = pa.RecordBatch.from_struct_array(rows)
        return empty
    batch: RecordBatch = pa.RecordBatch.from_arrays(list(arrays), names=list(columns))
    return batch


def array_of(column: str, values: Sequence[Any]) -> Array:
    """A column from Python values: times in microseconds, the headers of a record as (name, value) pairs."""
    if column == "headers":
        values = [[{"key": _text(name), "value": value} for name, value in pairs] for pairs in values]
    array: Array = pa.array(values, _TYPES[column])
    return array


def fixed_array(column: str, length: int, data: Any) -> Array:
    """A column without nulls around the bytes of its numbers."""
    array: Array = pa.Array.from_buffers(_TYPES[column], length, [None, pa.py_buffer(data)], 0)
    return array


def binary_array(length: int, null_count: int, validity: Any, offsets: Any, data: Any) -> Array:
    """Byte strings around their bytes, the `length` + 1 places where they begin and end, and a bitmap."""
    bitmap = pa.py_buffer(validity) if null_count else None
    array: Array = pa.Array.from_buffers(
        pa.binary(), length, [bitmap, pa.py_buffer(offsets), pa.py_buffer(data)], null_count
    )
    return array


def headers_array(length: int, offsets: Any, names: Array, values: Array) -> Array:
    """The headers of records, from all names and values and the `length` + 1 places where records begin."""
    pairs = pa.Array.from_buffers(_HEADER, len(names), [None], 0, children=[_texts(names), values])
    array: Array = pa.Array.from_buffers(
        _TYPES["headers"], length, [None, pa.py_buffer(offsets)], 0, children=[pairs]
    )
    return array


def _texts(names: Array) -> Array:
    try:
        return names.cast(pa.string())
    except pa.ArrowInvalid:
        texts: Array = pa.array([_text(name) for name in names.to_pylist()], pa.string())
        return texts


def _text(name: bytes) -> str:
    """A header's name, with U+FFFD for bytes that aren't UTF-8, as in Java's clients."""
    return name.decode(errors="replace")
