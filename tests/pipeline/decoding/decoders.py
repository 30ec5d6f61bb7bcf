"""Both decoders, and their results in a form that can be compared."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final, NamedTuple

from barnabas.pipeline.columnar import RecordBatch
from barnabas.pipeline.decoding import DECODED_COLUMNS, BatchError, _native, _python
from barnabas.pipeline.decoding.arrow import pa
from barnabas.protocol.aborted_transactions import AbortedTransactions
from barnabas.protocol.varint import Buffer

DECODERS: Final[list[type[_python.RecordDecoder]]] = [_python.RecordDecoder, _native.RecordDecoder]
DECODER_NAMES: Final = ["python", "native"]

SMALL_BOUNDS: Final = {"decompressed_bytes_max": 1 << 16}
"""Malformed bytes of a codec are tried with more and more room, up to this much."""


class Outcome(NamedTuple):
    """Everything there is to see of a decoder after it was given some bytes."""

    position: int | None
    error: tuple[int, int, str, int | None] | None
    next_offset: int | None
    record_count: int
    size_bytes: int
    schema: Any
    columns: dict[str, list[Any]]


def outcome(
    decoder_class: type[_python.RecordDecoder],
    data: Buffer,
    columns: Collection[str] = DECODED_COLUMNS,
    *,
    bounds: dict[str, int] | None = None,
    **options: Any,
) -> Outcome:
    """`options` are those of `add`. After an error, the records in front of it are part of the outcome."""
    decoder = decoder_class(columns, **(bounds or {}))
    position, error = None, None
    try:
        position = decoder.add(data, **options)
    except BatchError as raised:
        error = (raised.base_offset, raised.position, raised.reason, raised.next_position)
    count, size = decoder.record_count, decoder.size_bytes
    batch = decoder.take()
    assert batch.num_rows == count
    return Outcome(position, error, decoder.next_offset, count, size, batch.schema, column_lists(batch))


def compare_decoders(
    data: Buffer,
    columns: Collection[str] = DECODED_COLUMNS,
    *,
    aborted: list[tuple[int, int]] | None = None,
    bounds: dict[str, int] = SMALL_BOUNDS,
    **options: Any,
) -> Outcome:
    """The outcome, which must be the same with both decoders; `aborted` as in a Fetch response."""
    python, native = (
        outcome(
            decoder,
            data,
            columns,
            bounds=bounds,
            aborted=None if aborted is None else AbortedTransactions.from_fetch(aborted),
            **options,
        )
        for decoder in DECODERS
    )
    assert native == python
    return native


def column_lists(batch: RecordBatch) -> dict[str, list[Any]]:
    """The columns as Python values, times in microseconds, since not all of them are dates in Python."""
    batch.validate(full=True)
    return {
        name: (column.cast(pa.int64()) if name == "timestamp" else column).to_pylist()
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    }


def rows(
    decoder_class: type[_python.RecordDecoder], data: Buffer, *columns: str, **options: Any
) -> list[tuple[Any, ...]]:
    """One tuple for each record of bytes that are in order."""
    found = outcome(decoder_class, data, columns, **options)
    assert found.error is None
    return list(zip(*found.columns.values(), strict=True))
