"""One broker: creates its parts and connects them.

The parts are created in the order of their dependencies; `opening` then loads their state. The other methods
report events of one part to the parts that need them: topics created and deleted, logs that moved, clients
that are gone. Decisions are made in the parts. There are no globals, so a process can run any number of
brokers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence, Set
from functools import partial
from typing import Final
from uuid import UUID

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.config.dynamic_settings import DynamicSettings
from barnabas.broker.config.effective import EffectiveConfig
from barnabas.broker.config.group_config import GroupConfigs
from barnabas.broker.internal_topics.coordinator_topic import BrokerParts
from barnabas.broker.internal_topics.internal_topics import InternalTopics
from barnabas.broker.internal_topics.offsets_topic import OffsetsTopic
from barnabas.broker.internal_topics.share_state_topic import ShareStateTopic
from barnabas.broker.internal_topics.transaction_state_topic import TransactionStateTopic
from barnabas.broker.metrics.coordinator_metrics import publish_groups, publish_share_states
from barnabas.broker.metrics.share_metrics import publish_dead_letters, publish_share
from barnabas.broker.metrics.storage_metrics import publish_storage
from barnabas.broker.node.idle_logs import IdleLogs
from barnabas.broker.node.letter_assembly import make_dead_letters
from barnabas.broker.node.quota_assembly import make_client_quotas, make_connection_quotas
from barnabas.broker.produce.preparation import Preparation
from barnabas.broker.produce.produce_order import ProduceOrder
from barnabas.broker.security.users import Users
from barnabas.broker.sessions.fetch_sessions import FetchSessionCache
from barnabas.coordinator.metadata.controller import Controller
from barnabas.coordinator.metadata.features import SHARE_VERSION
from barnabas.coordinator.metadata.image import (
    ConfigResource,
    MetadataChanges,
    ResourceType,
    Topic,
)
from barnabas.coordinator.metadata.partition_logs import PartitionLogs
from barnabas.coordinator.metadata.producer_ids import ProducerIds
from barnabas.coordinator.metadata.share_version import share_groups_enabled
from barnabas.coordinator.metadata.topic_names import (
    METADATA_PARTITION,
    OFFSETS_TOPIC,
    SHARE_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
)
from barnabas.protocol.identity import Place, SharePartitionKey, TopicIdPartition, TopicNamePartition
from barnabas.protocol.metadata_records import UserScramCredentialRecord
from barnabas.runtime.clock import Clock
from barnabas.runtime.deadlines import CallLater, Deadlines
from barnabas.runtime.logging import get_logger
from barnabas.runtime.long_work import LongWork
from barnabas.runtime.metrics import Metrics
from barnabas.runtime.purgatory import Purgatory
from barnabas.runtime.response_budget import ResponseBudget
from barnabas.runtime.stepwise import StepwiseWork
from barnabas.share.dead_letters.dead_letters import DeadLetters
from barnabas.share.fetch.fetch_source import FetchSource
from barnabas.share.fetch.kept_answers import KeptAnswers
from barnabas.share.leader.idle_leaders import checkpoint_before_closing
from barnabas.share.leader.leader_loads import LeaderLoads
from barnabas.share.leader.share_partitions import SharePartitions
from barnabas.share.leader.state_keeper import StateKeeper
from barnabas.share.leader.state_store import ShareStateStore
from barnabas.share.log_store.log_state_store import LogStateStore
from barnabas.share.log_store.pinned_checkpoints import PinnedCheckpoints
from barnabas.share.sessions.acknowledgements import Acknowledgements
from barnabas.share.sessions.session import ShareSession
from barnabas.share.sessions.session_cache import ShareSessionCache
from barnabas.share.sweep.sweep import Sweep
from barnabas.storage.directory.log_directory import LogDirectory
from barnabas.storage.log.partition_log import PartitionLog

log = get_logger("broker")

_SESSION_ID_MASK: Final = 2**31 - 1
_RANDOM_SHIFT: Final = 80
_RANDOM_END: Final = 2**48
"""The upper 48 of the 128 bits of a version 4 id are random."""


class Broker:
    """The parts of one broker. Made by `open_broker`; each handler gets the parts that it uses."""

    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock,
        log_directory: LogDirectory,
        metadata: Controller,
        effective: EffectiveConfig,
        call_later: CallLater | None,
        new_id: Callable[[], UUID],
    ) -> None:
        self.config = config
        self.clock = clock
        self.log_directory = log_directory
        self.metadata = metadata
        self.effective_config = effective
        self.loop, self.metrics = asyncio.get_running_loop(), Metrics()
        self.response_budget = ResponseBudget(config.integer("fetch.max.bytes"))
        self.users = Users(self._scram_credential, log_directory.filesystem)
        self.dynamic_settings = DynamicSettings(effective, log_directory.storage)
        self.quotas = make_client_quotas(config, clock)
        self.connection_quotas = make_connection_quotas(config, clock)
        self._quotas_changed()
        self.cluster_id = log_directory.cluster_id
        self.node_id = config.node_id
        self.group_configs = GroupConfigs(config, effective, metadata.image)
        self.internal_topics = InternalTopics(config, metadata)
        self.producer_ids = ProducerIds(metadata.allocate_producer_id_block)
        self.deadlines = Deadlines(clock, call_later)
        self.purgatory = Purgatory(self.deadlines)
        self.logs = self._make_logs()
        self.idle_logs = IdleLogs(log_directory, metadata.image, self.logs)
        self.produce_order = ProduceOrder()
        self.preparation = Preparation(effective, log_directory.filesystem)
        self.long_work = LongWork(log_directory.filesystem)
        self.time_lookups = StepwiseWork(log_directory.filesystem)
        self.fetch_sessions = self._make_fetch_sessions(new_id)
        self.share_sessions = ShareSessionCache(config.integer("group.share.max.share.sessions"))
        self.kept_answers = KeptAnswers()
        self.share_state = self._make_share_state()
        self.state_store = self._make_state_store()
        self.dead_letters = self._make_dead_letters()
        self.share_partitions = self._make_share_partitions(new_id)
        self.offsets_topic = self._make_offsets_topic(new_id)
        self.groups = self.offsets_topic.groups
        self.fetch_source = self._make_fetch_source()
        self.transactions = self.share_partitions.transactions = self._make_transactions()
        self._publish_metrics()
        self.acknowledgements = Acknowledgements(self.share_partitions, self.fetch_source.leadership_error)
        self.sweep = self._make_sweep()
        self._follow_metadata()
        self.failed: asyncio.Future[Exception] = self.loop.create_future()
        """Set to the error of a failed metadata append, after which the process must end."""

    def _scram_credential(self, name: str, mechanism: int) -> UserScramCredentialRecord | None:
        return self.metadata.image.scram_credentials.get((name, mechanism))

    def _publish_metrics(self) -> None:
        publish_storage(self.metrics, self.log_directory)
        publish_share(
            self.metrics, self.share_partitions, self.share_sessions, self.purgatory, self.metadata.image
        )
        publish_dead_letters(self.metrics, self.dead_letters, self.share_partitions)
        publish_groups(self.metrics, self.groups, self.offsets_topic.topic)
        publish_share_states(self.metrics, self.share_partitions.counts, self.share_state)

    def _make_logs(self) -> PartitionLogs:
        return PartitionLogs(
            self.log_directory,
            self.metadata.image,
            config_of=self.effective_config.topic_config,
            leader_epoch=self.metadata.node_epoch,
            on_opened=self._log_opened,
            on_moved=self._log_moved,
            on_pinned=self._log_pinned,
            on_replaced=self._log_replaced,
        )

    def _make_share_state(self) -> ShareStateTopic | None:
        """The share coordinator and its topic; None with share.state.store=log."""
        return (
            ShareStateTopic(self.coordinator_parts())
            if self.config.text("share.state.store") == "topic"
            else None
        )

    def coordinator_parts(self) -> BrokerParts:
        """The parts that a coordinator and its topic use."""
        return BrokerParts(
            self.config, self.metadata, self.logs, self.log_directory, self.clock, self.deadlines
        )

    def _make_state_store(self) -> ShareStateStore:
        if self.share_state is not None:
            return self.share_state.store
        deltas_per_checkpoint = self.config.integer("share.coordinator.snapshot.update.records.per.snapshot")
        return LogStateStore(self._open_log, self.clock.wall_ms, deltas_per_checkpoint)

    def _make_share_partitions(self, new_id: Callable[[], UUID]) -> SharePartitions:
        return SharePartitions(
            clock=self.clock,
            deadlines=self.deadlines,
            purgatory=self.purgatory,
            groups=self,
            limits=self.group_configs.limits_of,
            random=lambda: (new_id().int >> _RANDOM_SHIFT) / _RANDOM_END,
            has_topic=self.metadata.image.has_topic,
            store=self.state_store,
            reopen=self.logs.reopen,
            dead_letters=self.dead_letters,
        )

    def _make_dead_letters(self) -> DeadLetters:
        return make_dead_letters(
            self.group_configs,
            self.effective_config,
            self.metadata,
            self.logs,
            self.clock,
            self.deadlines,
        )

    def _make_fetch_sessions(self, new_id: Callable[[], UUID]) -> FetchSessionCache:
        return FetchSessionCache(
            self.config.integer("max.incremental.fetch.session.cache.slots"),
            lambda: new_id().int & _SESSION_ID_MASK,
        )

    def _make_fetch_source(self) -> FetchSource:
        return FetchSource(
            self.metadata.image,
            self.logs,
            self.groups.share,
            self.group_configs,
            self.share_partitions,
            self.clock,
            self.time_lookups,
        )

    def _make_sweep(self) -> Sweep:
        return Sweep(
            self.clock,
            self.deadlines,
            self.metadata.image,
            self.group_configs,
            self.groups.share,
            self.logs,
            self.share_partitions,
            self.fetch_source.load_leader,
        )

    def _make_offsets_topic(self, new_id: Callable[[], UUID]) -> OffsetsTopic:
        return OffsetsTopic(
            self.coordinator_parts(),
            configs=self.group_configs,
            share_state=StateKeeper(self.share_partitions, self.state_store),
            partition_loads=LeaderLoads(self.share_partitions),
            new_uuid=new_id,
        )

    def _make_transactions(self) -> TransactionStateTopic:
        return TransactionStateTopic(
            self.coordinator_parts(),
            self.producer_ids,
            self.groups,
            self.share_partitions,
            self.fetch_source.load_leader,
        )

    async def close(self) -> None:
        """Write all pending state and release the data directory. All clients must be disconnected."""
        await self.idle_logs.close()
        await self.sweep.close()
        await self.dead_letters.close()
        await self.transactions.close()
        await self.offsets_topic.close()
        await self.state_store.drained()
        await checkpoint_before_closing(self.share_partitions)
        self.share_partitions.close()
        if self.share_state is not None:
            await self.share_state.close()
        self.deadlines.close()
        await self.logs.close()
        if not self.failed.done():
            await self.metadata.close()
        await self.log_directory.close(after_loss=self.transactions.coordinator.may_lack_epochs)

    # Called by share-partition leaders (`GroupFacts`).

    def group_incarnation(self, group_id: str) -> int | None:
        return self.groups.share.incarnation(group_id)

    def group_epoch(self, group_id: str) -> int:
        return self.groups.share.group_epoch(group_id)

    def starts_at_zero(self, key: SharePartitionKey) -> bool:
        return self.groups.share.starts_at_zero(key)

    # Events.

    def end_share_session(self, session: ShareSession) -> None:
        """The member has ended its session: release its acquired records."""
        if self.share_sessions.remove(session):
            self._share_session_ended(session, is_clean=True)

    def connection_closed(self, connection_id: int) -> None:
        """A client is gone: end the share session that it opened last."""
        self.produce_order.forget(connection_id)
        session = self.share_sessions.connection_lost(connection_id)
        if session is not None:
            self._share_session_ended(session, is_clean=False)

    def _share_session_ended(self, session: ShareSession, *, is_clean: bool) -> None:
        self.kept_answers.session_ended(session, self.clock.monotonic_ms())
        self._release(session, is_clean=is_clean)

    def _release(self, session: ShareSession, *, is_clean: bool) -> None:
        for partition in session:
            leader = self.share_partitions.get(partition.key)
            if leader is not None:
                leader.release_member(session.key.member_id, is_clean=is_clean)

    def _end_share_sessions(self) -> None:
        """Share groups are switched off: release all acquired records, and wake the waiting fetches."""
        for session in self.share_sessions.remove_all():
            self._share_session_ended(session, is_clean=True)
            for partition in session:
                self.purgatory.wake(partition.key.place)

    def _log_opened(self, topic: Topic, index: int, opened: PartitionLog) -> None:
        self.transactions.hanging.log_opened(TopicNamePartition(topic.name, index), opened)

    def _log_moved(self, place: Place, moved: PartitionLog) -> None:
        self.share_partitions.log_moved(place, moved)
        self.purgatory.wake(place)

    def _log_pinned(
        self, partition: TopicIdPartition, pinned: PartitionLog, group_ids: frozenset[str]
    ) -> None:
        if isinstance(self.state_store, LogStateStore):
            renewal = PinnedCheckpoints(self.share_partitions, self.state_store, self)
            renewal.renew(partition, pinned, sorted(group_ids))

    def _log_replaced(self, partition: TopicIdPartition) -> None:
        """The log went offline and was opened again: reload the state that depends on it from the log."""
        self.share_partitions.forget_partition(partition)
        self.purgatory.wake(partition.place)
        topic = self.metadata.image.topics_by_id.get(partition.topic_id)
        if topic is not None and topic.name == OFFSETS_TOPIC:
            self.offsets_topic.reload(partition.partition)
        if topic is not None and topic.name == TRANSACTION_STATE_TOPIC:
            self.transactions.reload(partition.partition)
        if topic is not None and topic.name == SHARE_STATE_TOPIC and self.share_state is not None:
            self.share_state.reload(partition.partition)

    def _follow_metadata(self) -> None:
        """Apply its changes, schedule its snapshots, and wake the fetches that wait for metadata records."""
        self.metadata.listeners += (self._metadata_changed, self.sweep.metadata_changed)
        self.metadata.on_failed = self._metadata_failed
        metadata_log = self.metadata.log
        metadata_log.on_moved = partial(self.purgatory.wake, METADATA_PARTITION)
        metadata_log.on_deadline = partial(self.deadlines.schedule, metadata_log)
        deadline_ms = metadata_log.next_deadline_ms()
        if deadline_ms is not None:
            self.deadlines.schedule(metadata_log, deadline_ms)

    def _metadata_failed(self, error: Exception) -> None:
        """The broker must stop, because it does not know how much of the append is on the disk."""
        if not self.failed.done():
            self.failed.set_result(error)

    def _metadata_changed(self, changes: MetadataChanges) -> None:
        self._fit_coordinators({topic.name for topic in changes.created})
        names = [topic.name for topic in (*changes.created, *changes.deleted, *changes.grown)]
        if names:
            self.groups.on_metadata_changed(names, has_new=bool(changes.created))
        for topic in changes.deleted:
            self._topic_deleted(topic)
        if changes.deleted:
            topics = {topic.name: topic.topic_id for topic in changes.deleted}
            self.groups.on_topics_deleted(topics)
            if self.share_state is not None:
                self.share_state.coordinator.on_topics_deleted(list(topics.values()))
        if changes.configs:
            self._configs_changed(changes.configs)
        if SHARE_VERSION in changes.features and not share_groups_enabled(self.metadata.image):
            self._end_share_sessions()
        if changes.client_quotas:
            self._quotas_changed()
        self.dead_letters.settings_changed()

    def _fit_coordinators(self, created: Set[str]) -> None:
        if OFFSETS_TOPIC in created:
            self.offsets_topic.fit()
        if TRANSACTION_STATE_TOPIC in created:
            self.transactions.fit()
        if SHARE_STATE_TOPIC in created and self.share_state is not None:
            self.share_state.fit()

    def _configs_changed(self, resources: Sequence[ConfigResource]) -> None:
        """Apply changed settings to logs, and to groups. A broker's settings affect all logs, as defaults of
        topics.
        """
        image = self.metadata.image
        groups = [name for kind, name in resources if kind == ResourceType.GROUP]
        if groups:
            self.groups.on_settings_changed(groups)
        if any(resource.resource_type == ResourceType.BROKER for resource in resources):
            self.logs.reconfigure(image.topics_by_name.values())
            self.dynamic_settings.apply()
        else:
            found = (image.topics_by_name.get(name) for kind, name in resources if kind == ResourceType.TOPIC)
            self.logs.reconfigure(topic for topic in found if topic is not None)

    def _quotas_changed(self) -> None:
        quotas = self.metadata.image.client_quotas
        self.quotas.quotas_changed(quotas)
        self.connection_quotas.quotas_changed(quotas)

    def _topic_deleted(self, topic: Topic) -> None:
        self.share_partitions.forget_topic(topic.topic_id, len(topic.partitions))
        self.logs.delete(topic)
        for index in range(len(topic.partitions)):
            self.purgatory.wake((topic.topic_id.int, index))

    async def _open_log(self, partition: TopicIdPartition) -> PartitionLog | None:
        topic = self.metadata.image.topics_by_id.get(partition.topic_id)
        if topic is None or partition.partition >= len(topic.partitions):
            return None
        return await self.logs.open(topic, partition.partition)
