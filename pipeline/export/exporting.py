"""Exports topics with their groups' state from a broker to a directory of Parquet files.

It writes the plan first (`planning`). Then Spark reads slices in parallel, each into one file, which gets its
name once it is whole (`record_file`). After a stop at any point, the same call goes on with the plan that it
finds and the missing slices. A task needs the memory of one row group, for topics of any size.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final
from uuid import UUID

from barnabas.client.cluster.topics import Isolation
from barnabas.client.consume.topic_reader import ReadSettings
from barnabas.client.errors import RecordsGoneError, TopicGoneError
from barnabas.pipeline.columnar import RecordBatch
from barnabas.pipeline.errors import OptionError, PipelineError
from barnabas.pipeline.export.directory import ExportDirectory
from barnabas.pipeline.export.log_records import find_folder, read_log_records
from barnabas.pipeline.export.manifest import (
    FILE_NAME,
    Choices,
    ExportedSlice,
    ExportedTopic,
    Manifest,
    decode_manifest,
    encode_manifest,
)
from barnabas.pipeline.export.planning import ExportRequest, plan_export
from barnabas.pipeline.export.record_file import find_slice, write_slice
from barnabas.pipeline.log_source.transaction_index import AbortedTransaction
from barnabas.pipeline.log_source.transactions import Transactions, read_transactions
from barnabas.pipeline.reading import PartitionRanges, read_records
from barnabas.pipeline.schema import RECORD_COLUMNS
from barnabas.protocol.identity import TopicIdPartition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TASKS_MAX: Final = 10_000
"""Tasks in one job: with more slices, a task exports several."""
SAMPLE_OFFSETS: Final = 1_000
"""The number of offsets of each topic that are read to estimate its size."""


@dataclass(frozen=True)
class ExportTask:
    """One slice, which an executor reads and writes."""

    request: ExportRequest
    directory: ExportDirectory
    topic: str
    partition: TopicIdPartition
    piece: ExportedSlice
    aborted: tuple[AbortedTransaction, ...] = ()
    """Transactions whose records are left out. Only for data directories: a broker leaves them out itself."""


def export_topics(spark: SparkSession, request: ExportRequest, location: str) -> Manifest:
    """Exports into the directory at `location`, or goes on with an export that was stopped.

    Raises `OptionError` for a directory with another export, `PipelineError` for one with a finished export,
    and the errors of `plan_export` and of reading.
    """
    directory = ExportDirectory(location)
    plan = find_or_make_plan(directory, request)
    directory.write_text(FILE_NAME, encode_manifest(plan))
    missing = missing_slices(request, directory, plan)
    if missing:
        tasks = spark.sparkContext.parallelize(missing, min(len(missing), TASKS_MAX))
        tasks.foreach(export_slice)
    done = replace(plan, is_complete=True, topics=tuple(_done(directory, topic) for topic in plan.topics))
    directory.write_text(FILE_NAME, encode_manifest(done))
    return done


def find_or_make_plan(directory: ExportDirectory, request: ExportRequest) -> Manifest:
    """The plan of a stopped export, or a new one; writes nothing. Raises the errors of `export_topics`."""
    text = directory.read_text(FILE_NAME)
    if text is None:
        return asyncio.run(plan_export(request))
    found = decode_manifest(text, directory.path(FILE_NAME))
    if found.is_complete:
        raise PipelineError(f"{directory.location} holds a complete export, of {found.created_at}.")
    asked = _asked(request.topics, request.choices)
    for option, planned in _asked([topic.name for topic in found.topics], found.choices).items():
        if asked[option] != planned:
            raise OptionError(
                option,
                f"{directory.location} holds an export that was stopped, with {planned} and not with "
                f"{asked[option]}; use the same value, or name another directory",
            )
    return found


def _asked(topics: Iterable[str], choices: Choices) -> Mapping[str, str]:
    """By option, the value that the call must repeat to go on with an export."""
    return {
        "--topics": ",".join(sorted(topics)),
        "--groups": "all groups" if choices.groups is None else ",".join(choices.groups),
        "--isolation": choices.isolation,
        "--slice-offsets": str(choices.slice_offsets),
    }


def missing_slices(request: ExportRequest, directory: ExportDirectory, plan: Manifest) -> list[ExportTask]:
    """A task for each missing slice of the plan."""
    tasks: list[ExportTask] = []
    for topic in plan.topics:
        for exported in topic.partitions:
            partition = TopicIdPartition(UUID(topic.topic_id), exported.partition)
            missing = [piece for piece in exported.slices if find_slice(directory, piece) is None]
            transactions = _transactions(request, topic.name, partition) if missing else None
            for piece in missing:
                aborted = (
                    transactions.aborted_between(piece.start_offset, piece.end_offset) if transactions else ()
                )
                tasks.append(ExportTask(request, directory, topic.name, partition, piece, aborted))
    return tasks


def _transactions(request: ExportRequest, topic: str, partition: TopicIdPartition) -> Transactions | None:
    """The aborted transactions of a partition that is read from its log, if they matter."""
    if not request.from_logs or request.isolation is Isolation.READ_UNCOMMITTED:
        return None
    with _as_planned(topic):
        return read_transactions(find_folder(request.data_directories, topic, partition))


def export_slice(task: ExportTask) -> None:
    """Reads and writes one slice; an executor runs this.

    Raises `PipelineError` if records of the plan are gone, and the errors of reading.
    """
    request, partition = task.request, task.partition
    if request.from_logs:
        directories = request.data_directories
        batches = read_log_records(directories, task.topic, partition, task.piece, task.aborted)
    else:
        batches = _read(request, task.topic, partition, task.piece)
    with _as_planned(task.topic):
        write_slice(task.directory, task.piece, batches)


def estimate_bytes(request: ExportRequest, plan: Manifest) -> dict[str, int]:
    """By topic, the approximate size of its records as Arrow columns, from the first ones of a partition."""
    estimates: dict[str, int] = {}
    for topic in plan.topics:
        offset_count = sum(partition.end_offset - partition.start_offset for partition in topic.partitions)
        sampled = next((partition for partition in topic.partitions if partition.slices), None)
        if sampled is None:
            estimates[topic.name] = 0
            continue
        end_offset = min(sampled.end_offset, sampled.start_offset + SAMPLE_OFFSETS)
        piece = replace(sampled.slices[0], end_offset=end_offset)
        partition = TopicIdPartition(UUID(topic.topic_id), sampled.partition)
        with _as_planned(topic.name):
            sampled_bytes = sum(batch.nbytes for batch in _read(request, topic.name, partition, piece))
        estimates[topic.name] = sampled_bytes * offset_count // (end_offset - sampled.start_offset)
    return estimates


def _read(
    request: ExportRequest, topic: str, partition: TopicIdPartition, piece: ExportedSlice
) -> Iterator[RecordBatch]:
    return read_records(
        request.servers,
        [PartitionRanges(topic, partition, ((piece.start_offset, piece.end_offset - 1, 0),))],
        tuple(RECORD_COLUMNS),
        settings=ReadSettings(isolation=request.isolation),
    )


@contextmanager
def _as_planned(topic: str) -> Generator[None]:
    """The advice for a topic whose planned records are gone."""
    try:
        yield
    except (RecordsGoneError, TopicGoneError) as error:
        gone = TopicGoneError(error.topic_id, topic) if isinstance(error, TopicGoneError) else error
        raise PipelineError(
            f"{gone} It was there when this export was planned, so the plan cannot be kept: "
            "export again, into another directory."
        ) from error


def _done(directory: ExportDirectory, topic: ExportedTopic) -> ExportedTopic:
    """The topic with the counts of its slices."""
    return replace(
        topic,
        partitions=tuple(
            replace(partition, slices=tuple(_found(directory, piece) for piece in partition.slices))
            for partition in topic.partitions
        ),
    )


def _found(directory: ExportDirectory, piece: ExportedSlice) -> ExportedSlice:
    found = find_slice(directory, piece)
    if found is None:
        raise PipelineError(
            f"{directory.path(piece.path)} was written by an executor, and the driver doesn't see it: name a "
            "directory that all of them share."
        )
    return found
