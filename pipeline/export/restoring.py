"""Restores an exported directory into a broker: topics, records, and the positions of groups.

These are the steps, and each may be repeated. It creates topics (`target_topics`). Spark writes and verifies
the records, one task per partition (`restore_partition`). Groups get their settings, their start offsets and
their records in flight (`in_flight`), or their committed offsets. Topics get the settings that were held
back. After a stop at any point, the same call goes on. After the groups are restored it does only the last
step, because by then records may be deleted, and groups may be at work.

A group must have no members until the end, or its broker refuses to move it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final
from uuid import UUID

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.cluster.metadata import metadata_request
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.export.directory import ExportDirectory
from barnabas.pipeline.export.group_restoring import GroupRestorer
from barnabas.pipeline.export.manifest import FILE_NAME, ExportedTopic, Manifest, decode_manifest
from barnabas.pipeline.export.offset_marks import marks_of
from barnabas.pipeline.export.record_file import find_slice
from barnabas.pipeline.export.requests import with_retries
from barnabas.pipeline.export.restore_partition import PartitionTask, RestoredPartition, restore_partition
from barnabas.pipeline.export.restore_state import (
    ARRIVED,
    BEGUN,
    COMPLETE,
    RestoredTopic,
    RestoreState,
    decode_state,
    encode_state,
    file_name,
)
from barnabas.pipeline.export.target_topics import TargetTopics
from barnabas.pipeline.export.unread_records import UnreadOffsets, find_unread, refuse_unread
from barnabas.pipeline.servers import Servers
from barnabas.protocol.client.consumer_apis import METADATA
from barnabas.protocol.identity import TopicIdPartition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BATCH_BYTES: Final = 512 * 1024
"""The size of a batch: half of the brokers' default limit. A larger record goes alone."""


@dataclass(frozen=True, kw_only=True)
class RestoreRequest:
    """The arguments of a restore."""

    servers: Servers
    append: bool = False
    """Whether to write behind existing records of a topic."""
    replication_factor: int = -1
    """The replication factor of created topics; -1 is the broker's default."""


@dataclass(frozen=True)
class RestorePlan:
    """The plan of a restore, which has changed nothing yet."""

    manifest: Manifest
    cluster_id: str
    state: RestoreState


@dataclass(frozen=True)
class RestoreReport:
    """The result of a restore: this or an earlier run has read all records of the manifest in the target."""

    manifest: Manifest
    written_count: int
    """Records that this run wrote."""
    notes: tuple[str, ...]
    """Refused, unchanged or inexact parts: one sentence each."""

    @property
    def record_count(self) -> int:
        return self.manifest.record_count


def plan_restore(request: RestoreRequest, location: str) -> RestorePlan:
    """The plan.

    Raises `PipelineError` for an unusable export, one that was restored already, or one whose groups would
    skip records of the target.
    """
    directory = ExportDirectory(location)
    text = directory.read_text(FILE_NAME)
    if text is None:
        raise PipelineError(f"{location} holds no export: there is no {FILE_NAME}.")
    manifest = decode_manifest(text, directory.path(FILE_NAME))
    if not manifest.is_complete:
        raise PipelineError(f"The export in {location} was stopped before its end: export again to go on.")
    _check_files(directory, manifest)
    plan, unread = asyncio.run(_plan(request, directory, manifest))
    refuse_unread(request.servers, unread)
    return plan


def restore_topics(
    spark: SparkSession,
    request: RestoreRequest,
    location: str,
    watching: Callable[[RestoreState], AbstractContextManager[None]] | None = None,
) -> RestoreReport:
    """Restores the export at `location`, or goes on with a restore that was stopped.

    Records are written inside the context from `watching`, which shows the progress.

    Raises `PipelineError` for an unusable export, one that was restored already, or records that did not
    arrive; and the client's errors.
    """
    plan = plan_restore(request, location)
    directory = ExportDirectory(location)
    state, written_count = plan.state, 0
    if state.progress == BEGUN:
        _write_state(directory, plan, state)
        made, notes = asyncio.run(make_topics(request, plan))
        _write_state(directory, plan, made)
        tasks = partition_tasks(request, directory, plan.manifest, made)
        with watching(made) if watching is not None else nullcontext():
            jobs = spark.sparkContext.parallelize(tasks, len(tasks)).map(restore_partition)
            restored: list[RestoredPartition] = jobs.collect()
        written_count = sum(partition.written_count for partition in restored)
        notes += asyncio.run(_restore_groups(request, plan, made, restored))
        state = replace(made, progress=ARRIVED, notes=tuple(notes))
        _write_state(directory, plan, state)
    late = asyncio.run(_finish_topics(request, plan, state))
    _write_state(directory, plan, replace(state, progress=COMPLETE))
    return RestoreReport(plan.manifest, written_count, (*state.notes, *late))


def partition_tasks(
    request: RestoreRequest, directory: ExportDirectory, manifest: Manifest, state: RestoreState
) -> list[PartitionTask]:
    """A task for each partition."""
    targets = {topic.name: topic for topic in state.topics}
    return [
        PartitionTask(
            request.servers,
            directory,
            topic.name,
            TopicIdPartition(UUID(targets[topic.name].topic_id), partition.partition),
            targets[topic.name].begin_offsets[partition.partition],
            partition.slices,
            tuple(marks_of(manifest, topic.name, partition.partition)),
            _batch_bytes(topic),
        )
        for topic in manifest.topics
        for partition in topic.partitions
    ]


def _batch_bytes(topic: ExportedTopic) -> int:
    """The limit of the records of a batch, with room for the batch's headers."""
    return min(BATCH_BYTES, int(topic.settings.get("max.message.bytes", BATCH_BYTES * 2)) // 2)


def _check_files(directory: ExportDirectory, manifest: Manifest) -> None:
    """Checks that every file of the manifest is there and unchanged."""
    for topic in manifest.topics:
        for partition in topic.partitions:
            for piece in partition.slices:
                found = find_slice(directory, piece)
                if found != piece:
                    state = "is missing" if found is None else "is not the one that was exported"
                    raise PipelineError(f"{directory.path(piece.path)} {state}.")


async def _plan(
    request: RestoreRequest, directory: ExportDirectory, manifest: Manifest
) -> tuple[RestorePlan, list[UnreadOffsets]]:
    """The plan, and the offsets that groups of the export would skip."""
    cluster = request.servers.cluster()
    targets = _targets(cluster, request)
    try:
        metadata = await with_retries(lambda: cluster.ask(METADATA, metadata_request(())))
        cluster_id = metadata.cluster_id or ""
        known = _read_state(directory, cluster_id)
        if known.progress == COMPLETE:
            raise PipelineError(
                f"{directory.location} was restored into this cluster already; to do it once more, delete "
                f"{directory.path(file_name(cluster_id))}."
            )
        by_name = {topic.name: topic for topic in known.topics}
        topics = [await targets.inspect(topic, by_name.get(topic.name)) for topic in manifest.topics]
        unread = await find_unread(cluster, manifest, topics) if known.progress == BEGUN else []
    finally:
        targets.close()
        cluster.close()
    if known.progress == ARRIVED and known.topics != tuple(topics):
        raise PipelineError(
            f"Topics were deleted since {directory.location} was restored into them; to do it once more, "
            f"delete {directory.path(file_name(cluster_id))}."
        )
    return RestorePlan(manifest, cluster_id, replace(known, topics=tuple(topics))), unread


async def make_topics(request: RestoreRequest, plan: RestorePlan) -> tuple[RestoreState, list[str]]:
    """The first step: creates missing topics; returns refused settings."""
    cluster = request.servers.cluster()
    targets = _targets(cluster, request)
    made: list[RestoredTopic] = []
    notes: list[str] = []
    try:
        for exported, planned in zip(plan.manifest.topics, plan.state.topics, strict=True):
            topic, refused = await targets.make(exported, planned)
            made.append(topic)
            notes += refused
    finally:
        targets.close()
        cluster.close()
    return RestoreState(BEGUN, tuple(made)), notes


async def _restore_groups(
    request: RestoreRequest, plan: RestorePlan, state: RestoreState, restored: Sequence[RestoredPartition]
) -> list[str]:
    """Restores each group; returns refused and inexact parts."""
    cluster = request.servers.cluster()
    restorer = GroupRestorer(cluster, {topic.name: topic for topic in state.topics}, restored)
    notes: list[str] = []
    try:
        for group in plan.manifest.share_groups:
            notes += await restorer.restore_share_group(group)
        for ordinary in plan.manifest.consumer_groups:
            notes += await restorer.restore_consumer_group(ordinary)
    finally:
        restorer.close()
        cluster.close()
    return notes


async def _finish_topics(request: RestoreRequest, plan: RestorePlan, state: RestoreState) -> list[str]:
    """Sets the settings that were held back; returns refused and unchanged ones."""
    cluster = request.servers.cluster()
    targets = _targets(cluster, request)
    notes: list[str] = []
    try:
        for exported, topic in zip(plan.manifest.topics, state.topics, strict=True):
            notes += await targets.finish(exported, topic)
    finally:
        targets.close()
        cluster.close()
    return notes


def _targets(cluster: Cluster, request: RestoreRequest) -> TargetTopics:
    return TargetTopics(cluster, replication_factor=request.replication_factor, append=request.append)


def _read_state(directory: ExportDirectory, cluster_id: str) -> RestoreState:
    text = directory.read_text(file_name(cluster_id))
    if text is None:
        return RestoreState(BEGUN, ())
    return decode_state(text, directory.path(file_name(cluster_id)))


def _write_state(directory: ExportDirectory, plan: RestorePlan, state: RestoreState) -> None:
    directory.write_text(file_name(plan.cluster_id), encode_state(state))
