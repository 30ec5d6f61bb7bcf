"""Prepares produced batches before their request begins to append: at once, or in a thread if it takes long.

The loop's thread prepares a request's batches within an `InlineBudget`. A thread does the rest, and later
requests of the connection wait for their turn (`produce_order`).

Bounds: those of `StepwiseWork` and `InlineBudget`, and DECOMPRESSED_BYTES_MAX for a decompressed batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from barnabas.broker.produce.inline_budget import InlineBudget
from barnabas.broker.produce.produced_records import Prepared, prepare
from barnabas.broker.produce.topic_rules import TopicRules, rules_at
from barnabas.protocol.errors import ApiError, ErrorCode, without_frames
from barnabas.runtime.stepwise import Steps, StepwiseWork

if TYPE_CHECKING:
    from barnabas.broker.config.effective import EffectiveConfig
    from barnabas.coordinator.metadata.image import Topic
    from barnabas.protocol.decode.produce import ProducePartition, ProduceTopic
    from barnabas.runtime.clock import Clock
    from barnabas.storage.filesystem import FileSystem
    from barnabas.storage.log.partition_log import PartitionLog

Preparing: TypeAlias = Prepared | ApiError | Steps[Prepared]
"""The batches to append, the error for the client, or the steps that are left to do."""
_FINISHED: Final = (Prepared, ApiError)


class FoundTopic(NamedTuple):
    """A topic of a request, with the broker's topic and logs."""

    topic: ProduceTopic
    found: Topic | None
    logs: Sequence[PartitionLog | None]
    """The logs of the request's partitions; None for one that is not open."""


class ProducedTopic(NamedTuple):
    """A topic of a request, with its batches."""

    topic: ProduceTopic
    found: Topic | None
    partitions: list[Preparing]
    """One for each of the request's partitions."""
    logs: Sequence[PartitionLog | None]


class Preparation:
    """Prepares the batches of all topics of one broker."""

    def __init__(self, effective: EffectiveConfig, clock: Clock, filesystem: FileSystem) -> None:
        """`filesystem` runs the threads."""
        self._effective = effective
        self._clock = clock
        self._work = StepwiseWork(filesystem)
        self._rules: TopicRules | None = None

    def begin(
        self,
        topics: Iterable[FoundTopic],
        *,
        zstd_allowed: bool,
        transactional_allowed: bool,
    ) -> tuple[list[ProducedTopic], bool]:
        """Prepare the batches that do not take long; also returns whether these are all.

        The flags are those of `validate_produced`.
        """
        now_ms, budget = self._clock.wall_ms(), InlineBudget()
        begun: list[ProducedTopic] = []
        is_finished = True
        for topic, found, logs in topics:
            if found is None or found.is_internal:
                refusal = _refusal(found)
                begun.append(ProducedTopic(topic, found, [refusal] * len(topic.partitions), logs))
                continue
            partitions: list[Preparing] = []
            for partition, log in zip(topic.partitions, logs, strict=True):
                rules = self._rules_at(found.name, log, now_ms)
                preparing = _begin(partition, rules, budget, zstd_allowed, transactional_allowed)
                partitions.append(preparing)
                if not isinstance(preparing, _FINISHED):
                    is_finished = False
            begun.append(ProducedTopic(topic, found, partitions, logs))
        return begun, is_finished

    def _rules_at(self, topic_name: str, log: PartitionLog | None, now_ms: int) -> TopicRules:
        """The rules for now. Requests of the same millisecond share them, because making them takes longer
        than the rest of `begin`.
        """
        config = self._effective.topic_config(topic_name) if log is None else log.config
        rules = self._rules
        if rules is None or rules.config is not config or rules.now_ms != now_ms:
            rules = self._rules = rules_at(config, now_ms)
        return rules

    async def finish(self, topics: Iterable[ProducedTopic]) -> None:
        """Do the rest of the preparations."""
        for _, _, partitions, _ in topics:
            for index, preparing in enumerate(partitions):
                if isinstance(preparing, _FINISHED):
                    continue
                try:
                    partitions[index] = await self._work.run(preparing)
                except ApiError as error:
                    partitions[index] = without_frames(error)


def _refusal(found: Topic | None) -> Preparing:
    """The error for a topic to which clients cannot produce."""
    if found is None:
        return ApiError(ErrorCode.unknown_topic_or_partition)
    return ApiError(ErrorCode.invalid_topic_exception, f"{found.name} is the broker's own.")


def _begin(
    partition: ProducePartition,
    rules: TopicRules,
    budget: InlineBudget,
    zstd_allowed: bool,
    transactional_allowed: bool,
) -> Preparing:
    if partition.records is None:
        return ApiError(ErrorCode.invalid_record, "A partition of the request has no records.")
    try:
        return prepare(partition.records, rules, budget, zstd_allowed, transactional_allowed)
    except ApiError as error:
        return without_frames(error)
