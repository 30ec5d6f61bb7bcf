"""Writes transaction markers into the logs of partitions; those for committed offsets go through the groups,
which replay them. A share-partition gets the outcome without a marker in its log.

A deleted topic, or a partition that does not exist, needs no marker.
"""

from __future__ import annotations

from functools import partial

from barnabas.broker.internal_topics.acknowledgement_outcomes import AcknowledgementOutcomes
from barnabas.coordinator.groups import Groups
from barnabas.coordinator.metadata.image import MetadataImage, Topic
from barnabas.coordinator.metadata.partition_logs import PartitionLogs
from barnabas.coordinator.metadata.topic_names import OFFSETS_TOPIC
from barnabas.coordinator.replay.interfaces import TransactionMarker
from barnabas.coordinator.transaction.decided_transactions import is_refused
from barnabas.coordinator.transaction.transaction import Participant
from barnabas.protocol.errors import ApiError
from barnabas.protocol.identity import SharePartitionKey, TopicNamePartition
from barnabas.runtime.clock import Clock
from barnabas.runtime.completion import Completion
from barnabas.runtime.logging import get_logger
from barnabas.runtime.tasks import Tasks
from barnabas.storage.errors import StorageError
from barnabas.storage.log.appended import Appended
from barnabas.storage.log.partition_log import PartitionLog

logger = get_logger("transactions")


class TransactionMarkers:
    """Writes markers of this node's coordinator (`MarkerWriter`), and of clients."""

    def __init__(
        self,
        image: MetadataImage,
        logs: PartitionLogs,
        groups: Groups,
        acknowledgements: AcknowledgementOutcomes,
        clock: Clock,
    ) -> None:
        self._image = image
        self._logs = logs
        self._groups = groups
        self._acknowledgements = acknowledgements
        self._clock = clock
        self._tasks = Tasks()

    def write_marker(self, participant: Participant, marker: TransactionMarker) -> Completion[None]:
        """See `MarkerWriter.write_marker`. Refusals, which correct clients never cause, and defects of the
        broker are logged.
        """
        written: Completion[None] = Completion()
        written.when_done(partial(_report, participant, marker))
        written.end_with(partial(self._begin, participant, marker))
        return written

    def _begin(self, participant: Participant, marker: TransactionMarker) -> Completion[None]:
        if isinstance(participant, SharePartitionKey):
            return self._acknowledgements.end(participant, marker)
        return self.forward(participant, marker)

    def forward(self, partition: TopicNamePartition, marker: TransactionMarker) -> Completion[None]:
        """The same for the marker of a client, which gets the refusal as its answer."""
        topic = self.topic_of(partition)
        if topic is None:
            return Completion.of(None)
        if topic.name == OFFSETS_TOPIC:
            return self._groups.end_transaction(partition.partition, marker)
        log = self._logs.get(topic, partition.partition)
        if log is not None:
            return self._append(marker, log)
        opened = self._tasks.run(partial(self._logs.open, topic, partition.partition))
        return opened.then_run(partial(self._append, marker))

    def topic_of(self, partition: TopicNamePartition) -> Topic | None:
        """The topic, if it has the partition."""
        topic = self._image.topics_by_name.get(partition.topic)
        return topic if topic is not None and 0 <= partition.partition < len(topic.partitions) else None

    async def drained(self) -> None:
        """Wait for the logs that are being opened. The logs wait for their own writes."""
        await self._tasks.drained()

    def _append(self, marker: TransactionMarker, log: PartitionLog) -> Completion[None]:
        append = log.append_marker(
            *marker.producer,
            marker.coordinator_epoch,
            commit=marker.commit,
            now_ms=self._clock.wall_ms(),
            transaction_version=marker.transaction_version,
        )
        return append.then(_nothing)


def _nothing(_: Appended) -> None:
    """Drops the marker's offset, which no caller needs."""


def _report(participant: Participant, marker: TransactionMarker, written: Completion[None]) -> None:
    if isinstance(participant, TopicNamePartition) and is_refused(written):
        logger.error(
            "transaction marker refused: the log knows a newer producer with the same producer id",
            topic=participant.topic,
            partition=participant.partition,
            producer_id=marker.producer.producer_id,
            producer_epoch=marker.producer.producer_epoch,
            outcome="commit" if marker.commit else "abort",
        )
    elif written.error is not None and not isinstance(written.error, ApiError | StorageError):
        logger.error(
            "a transaction marker met a defect of the broker",
            participant=str(participant),
            producer_id=marker.producer.producer_id,
            exc_info=written.error,
        )
