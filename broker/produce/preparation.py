"""Produced batches whose records take long to look into, or to pack anew: prepared off the loop.

A topic may want its records looked into (cleanup.policy=compact, message.timestamp.before.max.ms) or packed
in a codec of its own (compression.type); what takes more than a fraction of a millisecond of that is done in
a thread, before the request begins to append, and its connection's later ones take their turn
(`produce_order`). A batch from the future is refused anyhow: which of its records to name is found out
meanwhile, and nobody waits for it.

Bounds: those of `StepwiseWork`, and CHECKED_BYTES_MAX for what a batch unpacks to.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from barnabas.broker.produce.produced_records import (
    Prepared,
    is_repacked,
    prepare_in_steps,
    small_record_count,
)
from barnabas.protocol.batch_body import INLINE_RECORDS_MAX
from barnabas.protocol.errors import ApiError
from barnabas.protocol.messages.produce import ProducePartition
from barnabas.protocol.varint import Buffer
from barnabas.storage.appending.append import Append
from barnabas.storage.stepwise import Steps, StepwiseWork

if TYPE_CHECKING:
    from barnabas.broker.clock import Clock
    from barnabas.broker.config.effective import EffectiveConfig
    from barnabas.coordinator.metadata.image import Topic
    from barnabas.protocol.messages.produce import ProduceTopic
    from barnabas.storage.filesystem import FileSystem
    from barnabas.storage.log_config import LogConfig

    FoundTopic = tuple[ProduceTopic, Topic | None]
    _Prepare = Callable[[Buffer, LogConfig, int], Steps[Prepared]]


class PreparedPartition(ProducePartition):
    """A partition's part of a request that was prepared before its turn came."""

    outcome: Prepared | ApiError
    """What is to be appended, or why nothing is."""

    def take(self) -> Prepared:
        """What is to be appended; raises ApiError."""
        if isinstance(self.outcome, ApiError):
            raise self.outcome
        return self.outcome


class Preparation:
    """For all topics of one broker."""

    def __init__(self, effective: EffectiveConfig, clock: Clock, filesystem: FileSystem) -> None:
        """`filesystem` has the threads."""
        self._effective = effective
        self._clock = clock
        self._work = StepwiseWork(filesystem)
        self._refusals: set[asyncio.Task[Prepared]] = set()

    def takes_long(self, topics: Iterable[FoundTopic]) -> bool:
        """Whether what is produced to the topics is to be prepared by `prepare`."""
        if not self._effective.may_look_into_records:
            return False
        records_left = INLINE_RECORDS_MAX
        for topic, found in topics:
            config = self._config(found)
            if config is None:
                continue
            if is_repacked(config):
                return True
            for one in topic.partitions:
                count = 0 if one.records is None else small_record_count(one.records)
                if count is None or count > records_left:
                    return True
                records_left -= count
        return False

    async def prepare(
        self, topics: Iterable[FoundTopic], *, zstd_allowed: bool, transactional_allowed: bool
    ) -> list[FoundTopic]:
        """The topics of a request with all prepared that has its records looked into; the flags are those of
        `validate_produced`.
        """
        prepare = partial(
            prepare_in_steps, zstd_allowed=zstd_allowed, transactional_allowed=transactional_allowed
        )
        prepared: list[FoundTopic] = []
        for topic, found in topics:
            config = self._config(found)
            if config is not None:
                topic = topic._replace(  # noqa: PLW2901
                    partitions=[await self._partition(one, config, prepare) for one in topic.partitions]
                )
            prepared.append((topic, found))
        return prepared

    def refuse(self, steps: Steps[Prepared]) -> Append:
        """An append that fails with the error in which `steps` end."""
        ticket = Append()
        task = asyncio.get_running_loop().create_task(self._work.run(steps))
        self._refusals.add(task)
        task.add_done_callback(partial(self._refused, ticket))
        return ticket

    def _refused(self, ticket: Append, task: asyncio.Task[Prepared]) -> None:
        self._refusals.discard(task)
        if task.cancelled():
            return  # as are those who wait for the answer
        error = task.exception()
        assert isinstance(error, Exception), "what is late is never taken"
        ticket.fail(error)

    def _config(self, found: Topic | None) -> LogConfig | None:
        """The settings of a topic that clients may produce to, if by them its records are looked into."""
        if found is None or found.is_internal:
            return None
        config = self._effective.topic_config(found.name)
        return config if config.looks_into_records else None

    async def _partition(
        self, one: ProducePartition, config: LogConfig, prepare: _Prepare
    ) -> ProducePartition:
        if one.records is None:
            return one
        prepared = PreparedPartition(*one)
        try:
            prepared.outcome = await self._work.run(prepare(one.records, config, self._clock.wall_ms()))
        except ApiError as error:
            prepared.outcome = error
        return prepared
