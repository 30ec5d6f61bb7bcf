"""One broker: its parts, put together, and what happens between them.

Nothing is decided here. `open` builds the parts in the order in which they need each other; the rest passes
on what happened in one part to those whom it concerns: topics that came and went, logs that moved, clients
that are gone. There are no globals, so a process can run as many brokers as it likes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from uuid import UUID, uuid4

from barnabas.broker.clock import Clock
from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.config.effective import EffectiveConfig
from barnabas.broker.config.group_config import GroupConfigs
from barnabas.broker.config.rules import SettingRules
from barnabas.broker.deadlines import CallLater, Deadlines
from barnabas.broker.leader.fetch_source import FetchSource
from barnabas.broker.leader.share_partition_leader import SharePartitionLeader
from barnabas.broker.leader.share_partitions import SharePartitions
from barnabas.broker.leader.state_keeper import StateKeeper
from barnabas.broker.logging import get_logger
from barnabas.broker.metrics import Metrics
from barnabas.broker.offsets_topic import OffsetsTopic
from barnabas.broker.partition_logs import PartitionLogs
from barnabas.broker.purgatory import Purgatory
from barnabas.broker.response_budget import ResponseBudget
from barnabas.broker.share.limits import ShareLimits
from barnabas.broker.share.session import ShareSession
from barnabas.broker.share.session_cache import ShareSessionCache
from barnabas.broker.topic_catalog import ImageTopics
from barnabas.coordinator.group.group_coordinator import GroupCoordinator
from barnabas.coordinator.group.partition_hash import GROUP_PARTITION_COUNT
from barnabas.coordinator.group.settings import GroupSettings
from barnabas.coordinator.metadata.controller import Controller, Node
from barnabas.coordinator.metadata.image import MetadataChanges, MetadataImage, Topic
from barnabas.coordinator.metadata.metadata_log import MetadataLog
from barnabas.coordinator.metadata.producer_ids import ProducerIds
from barnabas.coordinator.metadata.topic_names import GROUP_STATE_TOPIC, METADATA_TOPIC
from barnabas.protocol.identity import SharePartitionKey, TopicIdPartition
from barnabas.protocol.metadata_records import BrokerEndpoint
from barnabas.protocol.varint import RecordFormatError
from barnabas.storage.errors import InvalidDirectory
from barnabas.storage.filesystem import FileSystem, RealFileSystem
from barnabas.storage.log import PartitionLog
from barnabas.storage.log_directory import LogDirectory

log = get_logger("broker")

_IDLE_LOGS_OPENED_MAX = 1_000
"""Logs opened though nobody asks for them; those beyond wait for their first client to be cleaned."""

_IDLE_LOG_PAUSE_SECONDS = 0.05

_METADATA_TOPIC_ID = UUID(int=1)
"""Kafka's id of `__cluster_metadata`."""


class Broker:
    """The parts of one broker. Made by `open`; the server hands it to every handler."""

    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock,
        log_directory: LogDirectory,
        metadata: Controller,
        effective: EffectiveConfig,
        call_later: CallLater | None,
    ) -> None:
        self.config = config
        self.clock = clock
        self.log_directory = log_directory
        self.metadata = metadata
        self.effective_config = effective
        self.loop = asyncio.get_running_loop()
        self.metrics = Metrics()
        self.response_budget = ResponseBudget()
        self.cluster_id = log_directory.cluster_id
        self.node_id = config.node_id
        self.group_configs = GroupConfigs(config, effective, metadata.image)
        self.producer_ids = ProducerIds(metadata.allocate_producer_id_block)
        self.deadlines = Deadlines(clock, call_later)
        self.purgatory = Purgatory(self.deadlines)
        self.logs = self._make_logs()
        self._offsets_topic = OffsetsTopic(metadata, self.logs, clock, GROUP_PARTITION_COUNT)
        self.share_sessions = ShareSessionCache(config.integer("group.share.max.share.sessions"))
        self.share_partitions = self._make_share_partitions()
        self._state_keeper = StateKeeper(self.share_partitions, self._open_log)
        self.group_coordinator = GroupCoordinator(
            log=self._offsets_topic,
            catalog=ImageTopics(metadata.image),
            share_state=self._state_keeper,
            configs=self.group_configs,
            settings=_group_settings(config),
        )
        self.fetch_source = FetchSource(
            metadata.image,
            self.logs,
            self.group_coordinator,
            self.group_configs,
            self.share_partitions,
            clock,
        )
        metadata.listeners.append(self._metadata_changed)
        metadata.on_failed = self._metadata_failed
        self.failed: asyncio.Future[Exception] = self.loop.create_future()
        """Done when the broker cannot go on truthfully, with the reason: its process is to end."""
        self._reloading: asyncio.Task[None] | None = None
        self._housekeeping: asyncio.Task[None] | None = None

    def _make_logs(self) -> PartitionLogs:
        return PartitionLogs(
            self.log_directory,
            self.metadata.image,
            config_of=self.effective_config.topic_config,
            leader_epoch=self.metadata.node_epoch,
            on_moved=self._log_moved,
            on_pinned=self._log_pinned,
            on_replaced=self._log_replaced,
        )

    def _make_share_partitions(self) -> SharePartitions:
        checkpoint_setting = "share.coordinator.snapshot.update.records.per.snapshot"
        return SharePartitions(
            clock=self.clock,
            deadlines=self.deadlines,
            purgatory=self.purgatory,
            groups=self,
            limits=self.share_limits,
            deltas_per_checkpoint=self.config.integer(checkpoint_setting),
        )

    @classmethod
    async def open(
        cls,
        config: BrokerConfig,
        *,
        clock: Clock,
        filesystem: FileSystem | None = None,
        call_later: CallLater | None = None,
    ) -> Broker:
        """A broker over its data directory, recovered and ready to serve. Raises StorageError or OSError.

        The machine's files and the running loop's timers are used unless a test brings its own.
        """
        files = filesystem or RealFileSystem()
        log_directory = await LogDirectory.open(
            files,
            config.log_directory,
            node_id=config.node_id,
            storage=config.storage_config(),
            wall_ms=clock.wall_ms,
        )
        try:
            return await cls._open_over(config, clock, files, log_directory, call_later)
        except BaseException:
            await log_directory.close()
            raise

    @classmethod
    async def _open_over(
        cls,
        config: BrokerConfig,
        clock: Clock,
        files: FileSystem,
        log_directory: LogDirectory,
        call_later: CallLater | None,
    ) -> Broker:
        image = MetadataImage()
        effective = EffectiveConfig(config, image)
        metadata_log = await log_directory.log(
            METADATA_TOPIC, 0, _METADATA_TOPIC_ID, config.metadata_log_config(), leader_epoch=0
        )
        metadata = Controller(
            Node(config.node_id, log_directory.directory_id, _endpoints(config)),
            MetadataLog(
                metadata_log,
                files,
                metadata_log.directory,
                bytes_between_snapshots=config.integer("metadata.log.max.record.bytes.between.snapshots"),
            ),
            SettingRules(config, effective),
            image=image,
            default_partition_count=config.integer("num.partitions"),
            new_id=uuid4,
            wall_ms=clock.wall_ms,
        )
        try:
            await metadata.start()
        except RecordFormatError as error:
            raise InvalidDirectory(
                f"{metadata_log.directory} is damaged: {error} Restore it from a copy of the data directory."
            ) from error
        for name in await log_directory.set_aside_strays({METADATA_TOPIC, *image.topics_by_name}):
            log.warning("directory of no topic set aside", directory=name)
        broker = cls(config, clock, log_directory, metadata, effective, call_later)
        await broker._load_groups()
        for warning in broker.group_configs.capped():
            log.warning(warning)
        log_directory.start()
        return broker

    def begin_housekeeping(self) -> None:
        """Open, one by one, the logs that nobody has asked for yet: retention goes over open ones.

        Apart from `open`, so that a start takes no longer however many logs there are.
        """
        self._housekeeping = self.loop.create_task(self._open_idle_logs())

    async def _open_idle_logs(self) -> None:
        on_disk = await self.log_directory.partitions_on_disk()
        for name, index in on_disk[:_IDLE_LOGS_OPENED_MAX]:
            topic = self.metadata.image.topics_by_name.get(name)
            opening = None if topic is None else self.logs.open_all([(topic, index)])
            if opening is not None:
                await opening
                await asyncio.sleep(_IDLE_LOG_PAUSE_SECONDS)

    async def close(self) -> None:
        """Write what must be written and let go of the data directory. No client is connected any more."""
        if self._housekeeping is not None:
            self._housekeeping.cancel()
        under_way = [task for task in (self._reloading, self._housekeeping) if task is not None]
        if under_way:
            await asyncio.wait(under_way)
        await self._offsets_topic.close()
        await self._state_keeper.close()
        self.deadlines.close()
        await self.logs.close()
        if not self.failed.done():
            await self.metadata.close()
        await self.log_directory.close()

    # What handlers look up.

    def open_log(self, topic: Topic, index: int) -> PartitionLog | None:
        """The partition's log, if it is open."""
        return self.logs.get(topic, index)

    def open_logs(self, partitions: Iterable[tuple[Topic, int]]) -> Awaitable[None] | None:
        """Something to wait for until these logs are open; None if they are."""
        return self.logs.open_all(partitions)

    def open_share_logs(self, partitions: Iterable[TopicIdPartition]) -> Awaitable[None] | None:
        """The same by topic id; those that don't exist are passed over."""
        closed = [one for one in partitions if not self.logs.is_open(one)]
        if not closed:
            return None
        topics = self.metadata.image.topics_by_id
        return self.logs.open_all(
            [(topics[one.topic_id], one.partition) for one in closed if one.topic_id in topics]
        )

    async def partition_log(self, topic: Topic, index: int) -> PartitionLog:
        """The partition's log, opened if need be. Raises StorageError."""
        return await self.logs.open(topic, index)

    async def load_leader(self, key: SharePartitionKey) -> SharePartitionLeader:
        """The leader of a share-partition. Raises ApiError or StorageError."""
        opening = self.open_share_logs([key.topic_id_partition])
        if opening is not None:
            await opening
        while (reset := self.share_partitions.reset_under_way(key)) is not None:
            await reset
        return self.fetch_source.lead(key)

    def partition_count(self, topic_id: UUID) -> int | None:
        """How many partitions the topic has; None if there is no such topic."""
        topic = self.metadata.image.topics_by_id.get(topic_id)
        return None if topic is None else len(topic.partitions)

    def share_limits(self, group_id: str) -> ShareLimits:
        """The group's limits as they are now."""
        return self.group_configs.of(group_id).limits

    # What share-partition leaders ask about groups (`GroupFacts`).

    def group_incarnation(self, group_id: str) -> int | None:
        return self.group_coordinator.incarnation(group_id)

    def group_epoch(self, group_id: str) -> int:
        return self.group_coordinator.group_epoch(group_id)

    # What happens.

    def group_deadline_moved(self) -> None:
        """A member's session has begun or been renewed."""
        deadline_ms = self.group_coordinator.next_deadline_ms()
        if deadline_ms is not None:
            self.deadlines.schedule(self.group_coordinator, deadline_ms)

    def end_share_session(self, session: ShareSession) -> None:
        """The member has ended its session: what it still holds goes to others."""
        if self.share_sessions.remove(session):
            self._release(session)

    def connection_closed(self, connection_id: int) -> None:
        """A client is gone, and with it the share session that it opened last."""
        session = self.share_sessions.connection_lost(connection_id)
        if session is not None:
            self._release(session)

    def _release(self, session: ShareSession) -> None:
        for partition in session.partitions:
            leader = self.share_partitions.get(SharePartitionKey(session.key.group_id, *partition))
            if leader is not None:
                leader.release_member(session.key.member_id)

    def _log_moved(self, partition: TopicIdPartition, moved: PartitionLog) -> None:
        self.share_partitions.log_moved(partition, moved)
        self.purgatory.wake(partition)

    def _log_pinned(
        self, partition: TopicIdPartition, pinned: PartitionLog, group_ids: frozenset[str]
    ) -> None:
        self.share_partitions.log_pinned(partition, pinned, group_ids)

    def _log_replaced(self, partition: TopicIdPartition) -> None:
        """The log went offline and was opened anew: its leaders, or its groups, begin from what it holds."""
        self.share_partitions.forget_partition(partition)
        self.purgatory.wake(partition)
        topic = self.metadata.image.topics_by_id.get(partition.topic_id)
        if topic is not None and topic.name == GROUP_STATE_TOPIC:
            self.group_coordinator.unload(partition.partition)
            self._reloading = self.loop.create_task(self._reload_groups(partition.partition, self._reloading))

    def _metadata_failed(self, error: Exception) -> None:
        if not self.failed.done():
            self.failed.set_result(error)

    def _metadata_changed(self, changes: MetadataChanges) -> None:
        names = [topic.name for topic in (*changes.created, *changes.deleted)]
        names += [grown.topic.name for grown in changes.grown]
        if names:
            self.group_coordinator.on_metadata_changed(names)
        for topic in changes.deleted:
            self._topic_deleted(topic)
        if changes.deleted:
            self.group_coordinator.on_topics_deleted([topic.topic_id for topic in changes.deleted])
        if changes.configs:
            self.logs.reconfigure()

    def _topic_deleted(self, topic: Topic) -> None:
        self.share_partitions.forget_topic(topic.topic_id, len(topic.partitions))
        self.logs.delete(topic)
        for index in range(len(topic.partitions)):
            self.purgatory.wake(TopicIdPartition(topic.topic_id, index))

    async def _open_log(self, partition: TopicIdPartition) -> PartitionLog | None:
        topic = self.metadata.image.topics_by_id.get(partition.topic_id)
        if topic is None or partition.partition >= len(topic.partitions):
            return None
        return await self.logs.open(topic, partition.partition)

    async def _load_groups(self) -> None:
        on_disk = {
            one.partition
            for one in await self.log_directory.partitions_on_disk()
            if one.topic == GROUP_STATE_TOPIC
        }
        for partition in range(GROUP_PARTITION_COUNT):
            if partition in on_disk:
                await self._load_groups_of(partition)
            else:
                self.group_coordinator.load(partition, (), now_ms=self.clock.monotonic_ms())

    async def _reload_groups(self, partition: int, earlier: asyncio.Task[None] | None) -> None:
        if earlier is not None:
            await asyncio.wait([earlier])
        self.group_coordinator.unload(partition)
        await self._load_groups_of(partition)

    async def _load_groups_of(self, partition: int) -> None:
        records = await self._offsets_topic.read(partition)
        self.group_coordinator.load(partition, records, now_ms=self.clock.monotonic_ms())
        self.group_deadline_moved()


def _endpoints(config: BrokerConfig) -> tuple[BrokerEndpoint, ...]:
    return tuple(
        BrokerEndpoint(name=one.name, host=one.advertised_host, port=one.advertised_port, security_protocol=0)
        for one in config.listeners
    )


def _group_settings(config: BrokerConfig) -> GroupSettings:
    return GroupSettings(
        max_size=config.integer("group.share.max.size"),
        max_groups=config.integer("group.share.max.groups"),
        initialize_retry_interval_ms=config.integer("group.share.initialize.retry.interval.ms"),
    )
