"""Gives the outcomes of transactions to share-partitions whose records were acknowledged in them.

The leader is loaded if need be. A share group or a topic that was deleted needs no outcome: its records are
gone, or delivered to no group. The leader of a share-partition that finds acknowledgements of an unknown
transaction, because a loss of power has taken the transaction's record, undoes them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from barnabas.coordinator.metadata.image import MetadataImage
from barnabas.coordinator.replay.interfaces import TransactionMarker
from barnabas.coordinator.share_group.coordinator import ShareGroupCoordinator
from barnabas.coordinator.transaction.coordinator import TransactionCoordinator
from barnabas.coordinator.transaction.named_outcome import is_held_open
from barnabas.coordinator.transaction.transaction import PREPARED
from barnabas.protocol.delivery_state import PendingAcknowledgement
from barnabas.protocol.errors import ApiError
from barnabas.protocol.identity import ProducerIdentity, SharePartitionKey
from barnabas.runtime.completion import Completion
from barnabas.runtime.logging import get_logger
from barnabas.runtime.tasks import Tasks
from barnabas.share.leader.share_partition_leader import SharePartitionLeader
from barnabas.share.leader.share_partitions import SharePartitions
from barnabas.share.partition.acknowledgement import TransactionEnd
from barnabas.storage.errors import StorageError

logger = get_logger("transactions")

LoadLeader = Callable[[SharePartitionKey], Awaitable[SharePartitionLeader]]
"""Loads the leader of a share-partition. Raises ApiError or StorageError."""


class AcknowledgementOutcomes:
    """The ends of transactions at the share-partitions of one broker. Used on the loop's thread only."""

    def __init__(
        self,
        image: MetadataImage,
        groups: ShareGroupCoordinator,
        leaders: SharePartitions,
        load_leader: LoadLeader,
    ) -> None:
        self._image = image
        self._groups = groups
        self._leaders = leaders
        self._load_leader = load_leader
        self._tasks = Tasks()
        self._unexamined: dict[SharePartitionKey, SharePartitionLeader] = {}
        """Leaders with acknowledgements that wait for the ends of transactions."""

    def end(self, key: SharePartitionKey, marker: TransactionMarker) -> Completion[None]:
        """Give effect to the end of a transaction; does nothing where nothing waits for it.

        COORDINATOR_LOAD_IN_PROGRESS, or the reason why the outcome cannot be recorded now.
        """
        end = TransactionEnd(marker.producer, marker.commit)
        try:
            if not self._is_read(key):
                return Completion.of(None)
        except ApiError as error:
            return Completion.failed(error)
        leader = self._leaders.get(key)
        if leader is not None and leader.log.offline is None:
            return leader.transactions.end(end)
        loaded = self._tasks.run(partial(self._load_leader, key))
        return loaded.then_run(lambda leader: leader.transactions.end(end))

    def found(self, leader: SharePartitionLeader) -> None:
        """A new leader has acknowledgements that wait for the ends of transactions."""
        self._unexamined[leader.key] = leader

    def examine(self, coordinator: TransactionCoordinator) -> None:
        """Undo the acknowledgements of transactions that the coordinator does not know. It has loaded all."""
        unexamined, self._unexamined = self._unexamined, {}
        for key, leader in unexamined.items():
            if leader.closed:
                continue
            for pending in leader.core.pending_acknowledgements:
                if not _is_known(coordinator, key, pending):
                    self._undo(leader, pending)

    async def drained(self) -> None:
        """Wait for the loads under way."""
        await self._tasks.drained()

    def _is_read(self, key: SharePartitionKey) -> bool:
        """Whether the group has share state in the partition. COORDINATOR_LOAD_IN_PROGRESS."""
        topic = self._image.topics_by_id.get(key.topic_id)
        return topic is not None and self._groups.reads(key)

    def _undo(self, leader: SharePartitionLeader, pending: PendingAcknowledgement) -> None:
        producer = ProducerIdentity(pending.producer_id, pending.producer_epoch)
        logger.warning(
            "acknowledgements of an unknown transaction are undone",
            group=leader.group_id,
            partition=leader.log.topic_partition.directory_name,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
        )
        leader.transactions.end(TransactionEnd(producer, commit=False)).when_done(_report_defect)


def _report_defect(ended: Completion[None]) -> None:
    """After any other error the next leader examines the acknowledgements again."""
    if ended.error is not None and not isinstance(ended.error, ApiError | StorageError):
        logger.error("acknowledgements could not be undone", exc_info=ended.error)


def _is_known(
    coordinator: TransactionCoordinator, key: SharePartitionKey, pending: PendingAcknowledgement
) -> bool:
    """Whether the coordinator will end the acknowledgement's transaction."""
    known = coordinator.of_producer(pending.producer_id)
    if known is None or not is_held_open(known, key):
        return False
    return known.state in PREPARED or known.producer_epoch == pending.producer_epoch
