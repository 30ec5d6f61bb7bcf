"""The parts of a share consumer: construction, start and close.

    intake <- share_leader -> share_exchange -> connection        one share_leader for each broker that leads
                  `-> ledger       |-> share_session
                                   `-> record_reader -> record
    share_leaders                                                 each partition's leader, a task for each
    heartbeats -> membership                                      the assignment

Every part can be used without the others.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from typing import Any, Final, Generic, NamedTuple

from barnabas.client.address import Address
from barnabas.client.backoff import Backoff
from barnabas.client.cluster import Cluster
from barnabas.client.errors import AcknowledgeError, BrokerUnavailableError
from barnabas.client.heartbeats import Heartbeats
from barnabas.client.intake import Intake
from barnabas.client.membership import Membership
from barnabas.client.missing_topics import warn_of_missing_topics
from barnabas.client.options import Settings
from barnabas.client.record import KeyT, Outcome, ShareRecord, ValueT
from barnabas.client.record_reader import Deserializers, RecordReader
from barnabas.client.share_exchange import ShareReading
from barnabas.client.share_leaders import ShareLeaders

log = logging.getLogger(__name__)

_MS_PER_SECOND: Final = 1000


class TopicPartition(NamedTuple):
    topic: str
    partition: int


class Identity(NamedTuple):
    """The member of the group, its topics, and the bootstrap brokers."""

    bootstrap: Sequence[Address]
    group_id: str
    member_id: str
    topics: Sequence[str]


class ConsumerParts(Generic[KeyT, ValueT]):
    """The parts of one consumer. Call `start` once and `close` once."""

    def __init__(
        self, identity: Identity, settings: Settings, deserializers: Deserializers[KeyT, ValueT]
    ) -> None:
        self._settings = settings
        self._topics = identity.topics
        self._cluster = Cluster(
            identity.bootstrap,
            client_id=settings.client_id,
            request_timeout_ms=settings.request_timeout_ms,
            security=settings.security,
        )
        self.leaders = ShareLeaders[KeyT, ValueT](self._start_task)
        self.intake = Intake[KeyT, ValueT](settings, self.leaders.look_again)
        self.leaders.use(
            ShareReading(
                group_id=identity.group_id,
                member_id=identity.member_id,
                settings=settings,
                cluster=self._cluster,
                reader=RecordReader(deserializers, settings.unreadable),
                intake=self.intake,
                on_outcome=self._note_outcome,
                on_stale_metadata=self.leaders.note_stale_metadata,
                on_leader_changed=self._note_leader_changed,
            )
        )
        self._membership = Membership(
            identity.group_id, identity.member_id, identity.topics, settings.rack_id
        )
        self.heartbeats = Heartbeats(self._cluster, self._membership, self._backoff(), self._note_assignment)
        self._delivered: list[ShareRecord[KeyT, ValueT]] = []
        """In implicit mode, the records that the last poll returned."""
        self._outcomes: dict[TopicPartition, AcknowledgeError | None] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._background: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Find the cluster and start reading.

        Raises `BrokerUnavailableError` if no broker is found in time.
        """
        try:
            await self._find_cluster()
        except BaseException:
            self._cluster.close()
            raise
        metadata = self.leaders.keep_metadata(self._backoff(), self._settings.metadata_max_age_ms)
        self._background = [self._start_task(metadata), self._start_task(self.heartbeats.run())]
        self._check_topics(self._topics)

    def subscribe(self, topics: Sequence[str]) -> None:
        """Read other topics from now on."""
        self.heartbeats.subscribe(topics)
        self._check_topics(topics)

    async def close(self, timeout_ms: int) -> None:
        """Send the acknowledgements, release the other records, leave the group, and end every task.

        After `timeout_ms` the connections are closed without waiting for the broker.
        """
        self.intake.end()
        try:
            async with asyncio.timeout(timeout_ms / _MS_PER_SECOND):
                await self.leaders.finish()
                await _cancel(self._background)
                await self.heartbeats.leave()
        except TimeoutError:
            log.warning("Leaving the group %s timed out", self._membership.group_id)
        finally:
            await _cancel(self._tasks)
            self.heartbeats.drop_connection()
            self._cluster.close()

    def note_delivered(self, records: Sequence[ShareRecord[KeyT, ValueT]]) -> None:
        """The reader has received these records."""
        if self._settings.is_implicit:
            self._delivered += records

    def accept_delivered(self) -> None:
        """In implicit mode, accept the records that the reader has received since the last call."""
        delivered, self._delivered = self._delivered, []
        for record in delivered:
            record.accept_delivered()

    def take_outcomes(self) -> dict[TopicPartition, AcknowledgeError | None]:
        """By partition, the result of the acknowledgements since the last call: the first error, or None."""
        outcomes, self._outcomes = self._outcomes, {}
        return outcomes

    async def _find_cluster(self) -> None:
        loop, backoff = asyncio.get_running_loop(), self._backoff()
        deadline = loop.time() + self._settings.connect_timeout_ms / _MS_PER_SECOND
        while True:
            try:
                await self._cluster.refresh(())
                return
            except BrokerUnavailableError as error:
                pause = backoff.next_ms() / _MS_PER_SECOND
                if loop.time() + pause >= deadline:
                    raise
                log.info("No broker answers yet: %s", error)
            await asyncio.sleep(pause)

    def _check_topics(self, topics: Sequence[str]) -> None:
        self._start_task(warn_of_missing_topics(self._cluster, topics))

    def _backoff(self) -> Backoff:
        settings = self._settings
        return Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms, settings.random)

    def _start_task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._note_task_done)
        return task

    def _note_task_done(self, task: asyncio.Task[None]) -> None:
        """A task that fails ends the consumer; its readers get the error."""
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.intake.end(error)

    def _note_assignment(self) -> None:
        self.leaders.assign(self._membership.assignment)

    def _note_leader_changed(self) -> None:
        self.leaders.deal_out()

    def _note_outcome(self, outcome: Outcome) -> None:
        partition = TopicPartition(outcome.topic, outcome.partition)
        self._outcomes[partition] = self._outcomes.get(partition) or outcome.error
        if outcome.error is not None:
            log.warning("%s", outcome.error)
        if self._settings.on_outcome is None:
            return
        try:
            self._settings.on_outcome(outcome)
        except Exception as error:
            log.exception("on_outcome failed; the consumer ends")
            self.intake.end(error)


async def _cancel(tasks: Sequence[asyncio.Task[None]] | set[asyncio.Task[None]]) -> None:
    ending = list(tasks)
    for task in ending:
        task.cancel()
    if ending:
        await asyncio.wait(ending)
