"""Data directories written by hand, so that a test knows each byte: segments, indexes, checkpoint files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from struct import Struct

from barnabas.pipeline.log_source.directories import PartitionFolder, find_partitions
from barnabas.pipeline.log_source.transaction_index import AbortedTransaction
from barnabas.protocol.record_batch import Compression, read_header
from barnabas.protocol.records import Record, encode_records
from barnabas.storage.format.checkpoint_file import encode_offsets
from barnabas.storage.format.offset_index import OffsetIndex
from barnabas.storage.format.time_index import TimeIndex

TRANSACTION_ENTRY = Struct(">hqqqq")
META_PROPERTIES = b"version=1\nnode.id=1\ncluster.id=c\n"


def batch_of(
    base_offset: int,
    count: int,
    *,
    time_ms: int | None = None,
    value_bytes: int = 0,
    compression: Compression = Compression.NONE,
    producer_id: int = -1,
    attributes: int = 0,
) -> bytes:
    """Records `value-<offset>` from `base_offset` on, one millisecond apart from `time_ms` (the offset)."""
    first_ms = base_offset if time_ms is None else time_ms
    records = [
        Record(
            base_offset + number,
            first_ms + number,
            b"key-%d" % (base_offset + number),
            b"value-%d" % (base_offset + number) + bytes(value_bytes),
            (("name", b"header"),),
        )
        for number in range(count)
    ]
    return encode_records(
        records, compression=compression, producer_id=producer_id, attributes=attributes, base_sequence=0
    )


@dataclass
class WrittenDirectory:
    """A data directory in `path`. Segments come one after the other by `segment`."""

    path: Path
    index_interval_bytes: int = 0
    """An index entry for each batch behind this number of bytes."""
    _ends: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])

    def __post_init__(self) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        (self.path / "meta.properties").write_bytes(META_PROPERTIES)

    def segment(
        self,
        batches: Sequence[bytes],
        *,
        topic: str = "t",
        partition: int = 0,
        base_offset: int | None = None,
    ) -> Path:
        """Writes a segment of these batches with its indexes, as a broker that has left it does."""
        folder = self.path / f"{topic}-{partition}"
        folder.mkdir(exist_ok=True)
        if base_offset is None:
            base_offset = read_header(batches[0]).base_offset if batches else 0
        path = folder / f"{base_offset:020d}.log"
        path.write_bytes(b"".join(batches))
        index, times = self._indexes(base_offset, batches)
        path.with_suffix(".index").write_bytes(index)
        path.with_suffix(".timeindex").write_bytes(times)
        if batches:
            self._ends[topic, partition] = read_header(batches[-1]).last_offset + 1
            self.checkpoint("recovery-point-offset-checkpoint", self._ends)
        return path

    def _indexes(self, base_offset: int, batches: Sequence[bytes]) -> tuple[bytes, bytes]:
        index, times = OffsetIndex(base_offset), TimeIndex(base_offset)
        index_bytes, time_bytes = b"", b""
        position, since, latest = 0, 0, (-1, base_offset)
        for batch in batches:
            header = read_header(batch)
            if not header.is_control:
                latest = max(latest, (header.max_timestamp_ms, header.last_offset), key=lambda one: one[0])
            if since > self.index_interval_bytes:
                index_bytes += index.append(header.last_offset, position)
                time_bytes += times.append(*latest)
                since = 0
            position += len(batch)
            since += len(batch)
        if latest[0] >= 0:
            time_bytes += times.append(*latest)
        return index_bytes, time_bytes

    def checkpoint(self, name: str, offsets: dict[tuple[str, int], int]) -> None:
        """Writes a checkpoint file of the directory."""
        (self.path / name).write_bytes(encode_offsets(offsets))

    def aborted(self, log_path: Path, transactions: Sequence[AbortedTransaction]) -> None:
        """Writes the transaction index of a segment."""
        log_path.with_suffix(".txnindex").write_bytes(
            b"".join(TRANSACTION_ENTRY.pack(0, *one, one.first_offset) for one in transactions)
        )

    def folder(self, topic: str = "t", partition: int = 0) -> PartitionFolder:
        """The partition as it is found."""
        (found,) = [one for one in find_partitions([str(self.path)], [topic]) if one.partition == partition]
        return found
