"""Decodes record batches, from a log or a Fetch response, to Arrow columns.

    decoder = RecordDecoder(["offset", "key", "value"])
    position = decoder.add(data)
    while decoder.is_full:
        yield decoder.take()
        position = decoder.add(data, position)
    yield decoder.take()               # and at `position` an incomplete batch begins

A native module does the work if it could be built. Otherwise its twin in plain Python gives the same columns
and the same errors, a hundred times slower. `RecordDecoder.is_native` shows which one is in use. This
package reads no files or sockets. It uses control records only to find the end of aborted transactions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.pipeline.decoding.arrow import (
    CONSTANT_COLUMNS,
    DECODED_COLUMNS,
    decoded_columns,
    with_constants,
)
from barnabas.pipeline.decoding.bounds import DECOMPRESSED_BYTES_MAX, EVERYTHING, TAKEN_BYTES_MAX, OffsetRange
from barnabas.pipeline.decoding.errors import BatchError

if TYPE_CHECKING:
    from barnabas.pipeline.decoding._python import RecordDecoder
else:
    try:
        from barnabas.pipeline.decoding._native import RecordDecoder
    except ImportError:
        from barnabas.pipeline.decoding._python import RecordDecoder

__all__ = [
    "CONSTANT_COLUMNS",
    "DECODED_COLUMNS",
    "DECOMPRESSED_BYTES_MAX",
    "EVERYTHING",
    "TAKEN_BYTES_MAX",
    "BatchError",
    "OffsetRange",
    "RecordDecoder",
    "decoded_columns",
    "with_constants",
]
