"""A batch that is being filled with encoded records, until it becomes the `Body` of a delivery."""

from __future__ import annotations

from typing import Final

from barnabas.client.produce.batch_delivery import Body
from barnabas.protocol.compression import compress
from barnabas.protocol.record_batch import Compression, encode_record

NO_HEADERS: Final = b"\x00"


class OpenBatch:
    """The records of one partition, at least one when it is closed."""

    __slots__ = ("_base_timestamp_ms", "_max_timestamp_ms", "_records", "size_bytes")

    def __init__(self, base_timestamp_ms: int) -> None:
        """`base_timestamp_ms` is the time of the first record."""
        self.size_bytes = 0
        """The records' size before compression."""
        self._base_timestamp_ms = base_timestamp_ms
        self._max_timestamp_ms = base_timestamp_ms
        self._records: list[bytes] = []

    def __len__(self) -> int:
        return len(self._records)

    def add(
        self, timestamp_ms: int, key: bytes | None, value: bytes | None, headers: bytes = NO_HEADERS
    ) -> int:
        """Append a record; `headers` are encoded, with their count first. Returns its size."""
        delta_ms = timestamp_ms - self._base_timestamp_ms
        record = encode_record(len(self._records), delta_ms, key, value, headers)
        self._max_timestamp_ms = max(self._max_timestamp_ms, timestamp_ms)
        self._records.append(record)
        self.size_bytes += len(record)
        return len(record)

    def body(self, compression: Compression, label: str) -> Body:
        """The batch's body; `label` is its name in an error."""
        return Body(
            compress(compression, b"".join(self._records)),
            compression,
            len(self._records),
            self._base_timestamp_ms,
            self._max_timestamp_ms,
            label,
        )
