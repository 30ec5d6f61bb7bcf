"""A digest of records in their order: two runs of records have the same one if and only if they are equal.

It covers key, value, headers and timestamp of each record, and does not depend on the batches. It leaves out
offsets, which shift from one log to another, and the type of the timestamp. Each column has a SHA-256 of its
own over Arrow's bytes, lengths apart from contents: some hundred megabytes a second, and no Python object per
record.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from importlib import import_module
from typing import Any, Final

from barnabas.pipeline.columnar import Array, RecordBatch
from barnabas.pipeline.decoding.arrow import pa

pc: Final[Any] = import_module("pyarrow.compute")

COLUMNS: Final = ("key", "value", "headers", "timestamp")
_STREAMS: Final = 10
_NULL_LENGTH: Final = -1
_INT32_BYTES: Final = 4
_INT64_BYTES: Final = 8


class RecordDigest:
    """The digest of batches of records; call `hexdigest` after the last one."""

    def __init__(self) -> None:
        self.record_count = 0
        self._streams = [sha256() for _ in range(_STREAMS)]

    def add(self, batch: RecordBatch) -> None:
        """Adds a batch, which has the `COLUMNS`, among others."""
        self.record_count += batch.num_rows
        for stream, data in zip(self._streams, _streams(batch), strict=True):
            stream.update(data)

    def hexdigest(self) -> str:
        """The digest of all records so far; more may follow."""
        total = sha256(self.record_count.to_bytes(_INT64_BYTES, "big"))
        for stream in self._streams:
            total.update(stream.digest())
        return total.hexdigest()


def _streams(batch: RecordBatch) -> Iterator[memoryview]:
    yield from _binary(batch.column("key"))
    yield from _binary(batch.column("value"))
    headers = batch.column("headers")
    yield _numbers(pc.fill_null(pc.list_value_length(headers), 0), _INT32_BYTES)
    pairs = headers.flatten()
    names, values = pairs.flatten() if len(pairs) else (pa.array([], pa.string()), pa.array([], pa.binary()))
    yield from _binary(names)
    yield from _binary(values)
    yield _numbers(batch.column("timestamp").cast(pa.timestamp("us", "UTC")).cast(pa.int64()), _INT64_BYTES)


def _binary(array: Array) -> Iterator[memoryview]:
    """Lengths, then contents."""
    lengths = pc.fill_null(pc.binary_length(array), _NULL_LENGTH)
    yield _numbers(lengths, _INT32_BYTES)
    contents = array.drop_null()
    _, offsets, data = contents.buffers()
    if not len(contents) or data is None:
        yield memoryview(b"")
        return
    bounds = memoryview(offsets).cast("i")
    yield memoryview(data)[bounds[contents.offset] : bounds[contents.offset + len(contents)]]


def _numbers(array: Array, width: int) -> memoryview:
    """The bytes of an array without nulls."""
    if not len(array):
        return memoryview(b"")
    return memoryview(array.buffers()[1])[array.offset * width : (array.offset + len(array)) * width]
