"""Prepares produced batches before their request begins to append: at once, or in a thread if it takes long.

The loop's thread prepares a request's batches within an `InlineBudget`. A thread does the rest, and later
requests of the connection wait for their turn (`produce_order`).

Bounds: those of `StepwiseWork` and `InlineBudget`, and DECOMPRESSED_BYTES_MAX for a decompressed batch.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias
from uuid import UUID

from barnabas.broker.produce.inline_budget import InlineBudget
from barnabas.broker.produce.produced_records import Prepared, prepare
from barnabas.protocol.errors import ApiError, ErrorCode, without_frames
from barnabas.runtime.stepwise import Steps, StepwiseWork
from barnabas.storage.errors import StorageError
from barnabas.storage.log.appended import Append

if TYPE_CHECKING:
    from barnabas.broker.config.effective import EffectiveConfig
    from barnabas.coordinator.metadata.image import Topic
    from barnabas.storage.filesystem import FileSystem
    from barnabas.storage.log.partition_log import PartitionLog

Progress: TypeAlias = Prepared | Steps[Prepared] | Append | ApiError | StorageError
"""What has become of the records of a partition: the batches to append, or the steps that are left to prepare
them; then the append; or the error that prevented one of these."""


class ProducedPartition:
    """One partition of a request."""

    __slots__ = ("index", "log", "progress", "records")

    def __init__(self, index: int, records: memoryview | None, log: PartitionLog | None) -> None:
        self.index = index
        self.records = records
        """None if there are none, and after the append, which has its own reference."""
        self.log = log
        """None if it is not open, or does not serve."""
        self.progress: Progress | None = None


class ProducedTopic(NamedTuple):
    """One topic of a request. An unknown one has only the name or only the id that the request has."""

    name: str
    topic_id: UUID
    found: Topic | None
    partitions: list[ProducedPartition]


class Preparation:
    """Prepares the batches of all topics of one broker."""

    def __init__(self, effective: EffectiveConfig, filesystem: FileSystem) -> None:
        """`filesystem` runs the threads."""
        self._effective = effective
        self._work = StepwiseWork(filesystem)

    def begin(
        self,
        topics: Iterable[ProducedTopic],
        *,
        now_ms: int,
        zstd_allowed: bool,
        transactional_allowed: bool,
    ) -> bool:
        """Prepare the batches of the known topics that do not take long; returns whether these are all.

        `now_ms` is wall time. The flags are those of `validate_produced`.
        """
        budget = InlineBudget()
        is_finished = True
        for name, _, found, partitions in topics:
            if found is None:
                continue
            for partition in partitions:
                log, records = partition.log, partition.records
                try:
                    if found.is_internal:
                        raise ApiError(ErrorCode.invalid_topic_exception, f"{name} is the broker's own.")
                    if records is None:
                        message = "A partition of the request has no records."
                        raise ApiError(ErrorCode.invalid_record, message)
                    config = self._effective.topic_config(name) if log is None else log.state.config
                    progress = prepare(records, config, now_ms, budget, zstd_allowed, transactional_allowed)
                except ApiError as error:
                    partition.progress = without_frames(error)
                else:
                    partition.progress = progress
                    is_finished = is_finished and isinstance(progress, Prepared)
        return is_finished

    async def finish(self, topics: Iterable[ProducedTopic]) -> None:
        """Do the rest of the preparations."""
        for topic in topics:
            for partition in topic.partitions:
                if isinstance(partition.progress, Generator):
                    try:
                        partition.progress = await self._work.run(partition.progress)
                    except ApiError as error:
                        partition.progress = without_frames(error)
