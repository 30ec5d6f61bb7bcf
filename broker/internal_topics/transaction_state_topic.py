"""`__transaction_state` with the transaction coordinator over it.

The states are loaded before the broker serves, except those of partitions that cannot be read; from then on
the coordinator carries out the ends that were decided. Hanging transactions in other logs are examined once
all partitions are loaded.
"""

from __future__ import annotations

from functools import partial

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.internal_topics.acknowledgement_outcomes import AcknowledgementOutcomes, LoadLeader
from barnabas.broker.internal_topics.coordinator_topic import BrokerParts, CoordinatorTopic
from barnabas.broker.internal_topics.hanging_transactions import HangingTransactions
from barnabas.broker.internal_topics.internal_topics import transactions_topic
from barnabas.broker.internal_topics.transaction_markers import TransactionMarkers
from barnabas.coordinator.groups import Groups
from barnabas.coordinator.metadata.features import TRANSACTION_VERSION
from barnabas.coordinator.transaction.coordinator import TransactionCoordinator
from barnabas.coordinator.transaction.interfaces import ProducerIdSource
from barnabas.coordinator.transaction.settings import TransactionSettings
from barnabas.protocol.identity import SharePartitionKey
from barnabas.runtime.counted_line import CountedLine
from barnabas.runtime.logging import get_logger
from barnabas.share.leader.share_partition_leader import SharePartitionLeader
from barnabas.share.leader.share_partitions import SharePartitions

logger = get_logger("transactions")


class TransactionStateTopic(CoordinatorTopic):
    """The transaction coordinator of this broker, with the log under it."""

    def __init__(
        self,
        parts: BrokerParts,
        producer_ids: ProducerIdSource,
        groups: Groups,
        leaders: SharePartitions,
        load_leader: LoadLeader,
    ) -> None:
        metadata, clock = parts.metadata, parts.clock
        self._acknowledgements = AcknowledgementOutcomes(metadata.image, groups.share, leaders, load_leader)
        self.markers = TransactionMarkers(metadata.image, parts.logs, groups, self._acknowledgements, clock)
        topic = parts.internal_topic(transactions_topic(parts.config))
        self.coordinator = TransactionCoordinator(
            log=topic,
            settings=_settings(parts.config, topic.partition_count),
            producer_ids=producer_ids,
            markers=self.markers,
            coordinator_epoch=lambda: metadata.node_epoch,
            transaction_version=lambda: metadata.image.features.get(TRANSACTION_VERSION, 0),
            now_ms=clock.monotonic_ms,
            wall_ms=clock.wall_ms,
            on_deadline=lambda: self._schedule(self.coordinator),
            was_closed_cleanly=parts.log_directory.was_closed_cleanly,
        )
        super().__init__(topic, self.coordinator, parts)
        self.refused_markers = CountedLine(
            clock, parts.deadlines, partial(logger.warning, "client's transaction marker refused")
        )
        self.hanging = HangingTransactions(
            self.coordinator, topic, self.markers, own_epoch=metadata.node_epoch
        )

    async def load(self) -> None:
        await super().load()
        self._schedule(self.coordinator)
        self._on_loaded()

    def _on_loaded(self) -> None:
        self.hanging.examine()
        self._examine_acknowledgements()

    def acknowledgements_found(self, leader: SharePartitionLeader) -> None:
        """A new leader has acknowledgements that wait for the ends of transactions."""
        self._acknowledgements.found(leader)
        self._examine_acknowledgements()

    def has_acknowledgements(self, key: SharePartitionKey) -> bool:
        """Whether acknowledgements in the share-partition may wait for the end of a transaction."""
        return self.coordinator.has_acknowledgements(key)

    def _examine_acknowledgements(self) -> None:
        if self.coordinator.is_loaded:
            self._acknowledgements.examine(self.coordinator)

    async def _finish_work(self) -> None:
        self.refused_markers.flush()
        await self.hanging.close()
        await self.markers.drained()
        await self._acknowledgements.drained()


def _settings(config: BrokerConfig, partition_count: int) -> TransactionSettings:
    return TransactionSettings(
        partition_count=partition_count,
        max_timeout_ms=config.integer("transaction.max.timeout.ms"),
        timeout_check_interval_ms=config.integer(
            "transaction.abort.timed.out.transaction.cleanup.interval.ms"
        ),
        id_expiration_ms=config.integer("transactional.id.expiration.ms"),
        id_expiration_check_interval_ms=config.integer(
            "transaction.remove.expired.transaction.cleanup.interval.ms"
        ),
        max_ids=config.integer("transaction.max.transactional.ids"),
    )
