"""Produced batches, prepared before their request begins to append: at once, or in a thread if it takes long.

The first step of each preparation is done on the loop's thread, within the request's `InlineBudget`. If
that is not enough for one of its batches, the rest is done in a thread, and the later requests of its
connection take their turn (`produce_order`).

Bounds: those of `StepwiseWork` and `InlineBudget`, and DECOMPRESSED_BYTES_MAX for what a batch unpacks to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from barnabas.broker.produce.inline_budget import InlineBudget
from barnabas.broker.produce.produced_records import Prepared, prepare_in_steps
from barnabas.protocol.errors import ApiError
from barnabas.protocol.messages.produce import ProducePartition
from barnabas.protocol.varint import Buffer
from barnabas.storage.stepwise import Steps, StepwiseWork, next_step

if TYPE_CHECKING:
    from barnabas.broker.clock import Clock
    from barnabas.broker.config.effective import EffectiveConfig
    from barnabas.coordinator.metadata.image import Topic
    from barnabas.protocol.messages.produce import ProduceTopic
    from barnabas.storage.filesystem import FileSystem
    from barnabas.storage.log_config import LogConfig

    FoundTopic = tuple[ProduceTopic, Topic | None]
    _Prepare = Callable[[Buffer, LogConfig], Steps[Prepared]]


class PreparedPartition(ProducePartition):
    """A partition's part of a request with its preparation, which has begun."""

    outcome: Prepared | ApiError | Steps[Prepared]
    """What is to be appended, why nothing is, or what is left to do."""

    @property
    def is_done(self) -> bool:
        return isinstance(self.outcome, Prepared | ApiError)

    def take(self) -> Prepared:
        """What is to be appended; raises ApiError."""
        if isinstance(self.outcome, ApiError):
            raise self.outcome
        assert isinstance(self.outcome, Prepared), "it was finished"
        return self.outcome


class Preparation:
    """For all topics of one broker."""

    def __init__(self, effective: EffectiveConfig, clock: Clock, filesystem: FileSystem) -> None:
        """`filesystem` has the threads."""
        self._effective = effective
        self._clock = clock
        self._work = StepwiseWork(filesystem)

    def begin(
        self, topics: Iterable[FoundTopic], *, zstd_allowed: bool, transactional_allowed: bool
    ) -> tuple[list[FoundTopic], bool]:
        """The topics of a request with their partitions' preparations begun, and whether all are done; the
        flags are those of `validate_produced`.

        A topic that clients don't produce to stays as it is.
        """
        prepare = partial(
            prepare_in_steps,
            now_ms=self._clock.wall_ms(),
            budget=InlineBudget(),
            zstd_allowed=zstd_allowed,
            transactional_allowed=transactional_allowed,
        )
        begun = [
            (topic, found)
            if found is None or found.is_internal
            else (self._begin_topic(topic, found, prepare), found)
            for topic, found in topics
        ]
        return begun, all(one.is_done for one in _prepared_partitions(begun))

    async def finish(self, topics: Iterable[FoundTopic]) -> None:
        """Do what is left of the preparations."""
        for one in _prepared_partitions(topics):
            if isinstance(one.outcome, Prepared | ApiError):
                continue
            try:
                one.outcome = await self._work.run(one.outcome)
            except ApiError as error:
                one.outcome = error

    def _begin_topic(self, topic: ProduceTopic, found: Topic, prepare: _Prepare) -> ProduceTopic:
        config = self._effective.topic_config(found.name)
        return topic._replace(partitions=[_begun(one, config, prepare) for one in topic.partitions])


def _begun(one: ProducePartition, config: LogConfig, prepare: _Prepare) -> ProducePartition:
    if one.records is None:
        return one
    prepared = PreparedPartition(*one)
    steps = prepare(one.records, config)
    try:
        done = next_step(steps)
    except ApiError as error:
        prepared.outcome = error
    else:
        prepared.outcome = steps if done is None else done[0]
    return prepared


def _prepared_partitions(topics: Iterable[FoundTopic]) -> Iterable[PreparedPartition]:
    return (one for topic, _ in topics for one in topic.partitions if isinstance(one, PreparedPartition))
