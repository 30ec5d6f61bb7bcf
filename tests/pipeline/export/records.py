"""Arrow batches of made-up records, with every kind of key, value, header and time."""

from collections.abc import Sequence
from typing import Any

from barnabas.pipeline.decoding.arrow import pa
from barnabas.pipeline.export.record_file import SCHEMA


def batch(first: int, end: int) -> Any:
    """Records `first` to `end`, exclusive; their offsets are three apart."""
    numbers = range(first, end)
    columns: dict[str, Sequence[Any]] = {
        "key": [None if one % 7 == 0 else b"key %d" % one for one in numbers],
        "value": [None if one % 11 == 0 else b"v" * (one % 50) for one in numbers],
        "topic": ["orders" for _ in numbers],
        "partition": [0 for _ in numbers],
        "offset": [one * 3 for one in numbers],
        "timestamp": [one * 1_000 for one in numbers],
        "timestampType": [0 for _ in numbers],
        "headers": [
            [{"key": f"h{one}", "value": None if one % 2 else b"x" * one}] * (one % 3) for one in numbers
        ],
    }
    return pa.RecordBatch.from_arrays(
        [pa.array(columns[field.name], field.type) for field in SCHEMA], schema=SCHEMA
    )
