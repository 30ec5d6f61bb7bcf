"""Writes the exported records of one partition into the target, and verifies them: a task of Spark.

It reads a slice back from the target first. Records from a stopped run must be the beginning of the slice;
the rest is written behind them. Then it reads the whole slice back and compares its digest. So it needs no
note of its progress, and reports only records that it has read in the target's log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from barnabas.client.cluster.topics import LATEST, Topics
from barnabas.pipeline.columnar import RecordBatch
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.export.directory import ExportDirectory
from barnabas.pipeline.export.manifest import ExportedSlice
from barnabas.pipeline.export.offset_marks import OffsetMarks, Place
from barnabas.pipeline.export.record_digest import RecordDigest
from barnabas.pipeline.export.record_file import read_slice
from barnabas.pipeline.export.record_writer import RecordWriter
from barnabas.pipeline.reading import PartitionRanges, read_records
from barnabas.pipeline.servers import Servers
from barnabas.protocol.identity import TopicIdPartition

_READ_BACK = ("offset", "key", "value", "headers", "timestamp")


@dataclass(frozen=True)
class PartitionTask:
    """The work of one task. `begin_offset` is the target's, `marks` are the source's offsets."""

    servers: Servers
    directory: ExportDirectory
    topic: str
    partition: TopicIdPartition
    """Of the target."""
    begin_offset: int
    slices: tuple[ExportedSlice, ...]
    marks: tuple[int, ...]
    batch_bytes: int


@dataclass(frozen=True)
class RestoredPartition:
    """The result of a task. `written_count` does not count records of an earlier run."""

    topic: str
    partition: int
    written_count: int
    places: dict[int, Place]


@dataclass
class _Arrived:
    """Records that were read back."""

    digest: RecordDigest = field(default_factory=RecordDigest)
    offsets: list[int] = field(default_factory=list[int])

    @property
    def record_count(self) -> int:
        return self.digest.record_count


def restore_partition(task: PartitionTask) -> RestoredPartition:
    """Restores one partition; an executor runs this.

    Raises `PipelineError` if the target holds records that aren't the exported ones, and the client's errors.
    """
    marks = OffsetMarks(task.marks)
    cursor, written_count = task.begin_offset, 0
    writer = RecordWriter(task.servers, task.topic, task.partition, task.batch_bytes)
    with closing(writer):
        for piece in task.slices:
            arrived = _read_back(task, cursor, piece.record_count)
            if arrived.record_count < piece.record_count:
                _check_beginning(task, piece, arrived)
                for batch in _rest(task.directory, piece, arrived.record_count):
                    written_count += batch.num_rows
                    writer.write(batch)
                writer.flush()
                arrived = _read_back(task, cursor, piece.record_count)
            _check_whole(task, piece, arrived)
            marks.take(_old_offsets(task.directory, piece), arrived.offsets)
            cursor = arrived.offsets[-1] + 1 if arrived.offsets else cursor
    _check_end(task, cursor)
    marks.finish(cursor)
    return RestoredPartition(task.topic, task.partition.partition, written_count, marks.found)


def _read_back(task: PartitionTask, offset: int, record_count: int) -> _Arrived:
    """At most `record_count` records of the target from `offset` on."""
    arrived = _Arrived()
    end_offset = asyncio.run(_end_offset(task))
    if offset >= end_offset or not record_count:
        return arrived
    wanted = [PartitionRanges(task.topic, task.partition, ((offset, end_offset - 1, 0),))]
    with closing(read_records(task.servers, wanted, _READ_BACK)) as batches:
        for batch in batches:
            some = batch.slice(0, record_count - arrived.record_count)
            arrived.digest.add(some)
            arrived.offsets += some.column("offset").to_pylist()
            if arrived.record_count == record_count:
                break
    return arrived


async def _end_offset(task: PartitionTask) -> int:
    cluster = task.servers.cluster()
    topics = Topics(cluster)
    try:
        await topics.find([task.topic])
        return (await topics.offsets([task.partition], LATEST))[task.partition] or 0
    finally:
        topics.close()
        cluster.close()


def _check_beginning(task: PartitionTask, piece: ExportedSlice, arrived: _Arrived) -> None:
    """Checks that the records in the target are the beginning of the slice."""
    digest = RecordDigest()
    for batch in read_slice(task.directory, piece):
        digest.add(batch.slice(0, arrived.record_count - digest.record_count))
        if digest.record_count == arrived.record_count:
            break
    if digest.hexdigest() != arrived.digest.hexdigest():
        raise _foreign(task, arrived.offsets)


def _check_whole(task: PartitionTask, piece: ExportedSlice, arrived: _Arrived) -> None:
    if arrived.record_count < piece.record_count:
        raise PipelineError(
            f"{task.topic}-{task.partition.partition} has {arrived.record_count} of the {piece.record_count} "
            f"records of {piece.path} after they were written: something deletes them."
        )
    if arrived.digest.hexdigest() != piece.sha256:
        raise _foreign(task, arrived.offsets)


def _foreign(task: PartitionTask, offsets: Sequence[int]) -> PipelineError:
    name = f"{task.topic}-{task.partition.partition}"
    return PipelineError(
        f"{name} has records between offsets {offsets[0]} and {offsets[-1]} that aren't the exported ones: "
        "another producer writes to it, or the exported files were changed."
    )


def _check_end(task: PartitionTask, cursor: int) -> None:
    behind = _read_back(task, cursor, 1)
    if behind.record_count:
        raise _foreign(task, behind.offsets)


def _rest(directory: ExportDirectory, piece: ExportedSlice, skipped_count: int) -> Iterator[RecordBatch]:
    """The slice's records behind the first ones."""
    for batch in read_slice(directory, piece):
        if skipped_count < batch.num_rows:
            yield batch.slice(skipped_count)
        skipped_count = max(0, skipped_count - batch.num_rows)


def _old_offsets(directory: ExportDirectory, piece: ExportedSlice) -> list[int]:
    return [
        offset
        for batch in read_slice(directory, piece, ["offset"])
        for offset in batch.column("offset").to_pylist()
    ]
