"""`__transaction_state` at work: the topic, the transaction coordinator over it, and its timers.

The states are loaded before the broker serves, but for those of partitions that cannot be read; what was
decided is carried out from then on. Transactions that hang in other logs are looked at once all are loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.internal_topics.hanging_transactions import HangingTransactions
from barnabas.broker.internal_topics.internal_topic import InternalTopic
from barnabas.broker.internal_topics.internal_topic_loader import InternalTopicLoader
from barnabas.broker.internal_topics.internal_topics import transactions_topic
from barnabas.broker.internal_topics.transaction_markers import TransactionMarkers
from barnabas.coordinator.groups import Groups
from barnabas.coordinator.metadata.controller import Controller
from barnabas.coordinator.metadata.features import TRANSACTION_VERSION
from barnabas.coordinator.metadata.partition_logs import PartitionLogs
from barnabas.coordinator.transaction.coordinator import TransactionCoordinator
from barnabas.coordinator.transaction.interfaces import ProducerIdSource
from barnabas.coordinator.transaction.settings import TransactionSettings
from barnabas.runtime.clock import Clock
from barnabas.runtime.counted_line import CountedLine
from barnabas.runtime.deadlines import Deadlines
from barnabas.runtime.logging import get_logger
from barnabas.storage.directory.log_directory import LogDirectory

logger = get_logger("transactions")


class TransactionStateTopic:
    """The transaction coordinator of this broker, with the log under it."""

    def __init__(
        self,
        config: BrokerConfig,
        metadata: Controller,
        logs: PartitionLogs,
        log_directory: LogDirectory,
        clock: Clock,
        deadlines: Deadlines,
        *,
        producer_ids: ProducerIdSource,
        groups: Groups,
    ) -> None:
        self._deadlines = deadlines
        self.markers = TransactionMarkers(metadata.image, logs, groups, clock)
        self.topic = InternalTopic(transactions_topic(config), metadata, logs, clock)
        self.coordinator = TransactionCoordinator(
            log=self.topic,
            settings=_settings(config, self.topic.partition_count),
            producer_ids=producer_ids,
            markers=self.markers,
            coordinator_epoch=lambda: metadata.node_epoch,
            transaction_version=_level(metadata),
            now_ms=clock.monotonic_ms,
            wall_ms=clock.wall_ms,
            on_deadline=self._deadline_moved,
        )
        self.refused_markers = CountedLine(
            clock, deadlines, partial(logger.warning, "client's transaction marker refused")
        )
        self.hanging = HangingTransactions(
            self.coordinator, self.topic, self.markers, own_epoch=metadata.node_epoch
        )
        self._loader = InternalTopicLoader(
            self.topic,
            log_directory,
            partition_count=self.coordinator.partition_count,
            load=self.coordinator.load,
            unload=self.coordinator.unload,
            resize=self.coordinator.resize,
            on_reloaded=self.hanging.examine,
        )

    async def load(self) -> None:
        """Load every partition that can be, at the start; the others are tried again. OSError."""
        await self._loader.load()
        self._deadline_moved()
        self.hanging.examine()

    @property
    def damage(self) -> str | None:
        """Why the state of some transactions is not known until a person has repaired the topic."""
        return self._loader.damage

    def reload(self, partition: int) -> None:
        """The partition's log was opened anew: begin from what it holds."""
        self._loader.reload(partition)

    def fit(self) -> None:
        """The topic has just been created, perhaps with another number of partitions."""
        self._loader.fit()

    async def close(self) -> None:
        """Wait for what is being written. No client is connected any more."""
        self.refused_markers.flush()
        await self._loader.close()
        await self.hanging.close()
        await self.markers.drained()
        await self.topic.drained()

    def _deadline_moved(self) -> None:
        deadline_ms = self.coordinator.next_deadline_ms()
        if deadline_ms is not None:
            self._deadlines.schedule(self.coordinator, deadline_ms)


def _level(metadata: Controller) -> Callable[[], int]:
    return lambda: metadata.image.features.get(TRANSACTION_VERSION, 0)


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
