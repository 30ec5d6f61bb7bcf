"""Makes a data directory of Barnabas from one of Apache Kafka: in another directory, or in place.

With another directory Kafka's is never changed; segments are copied, or hard-linked if they will not be
written again. In place the segments stay, and Kafka's internal topics are renamed to names that end in
`.kafka`. Until everything is written, the directory has the mark of an unfinished import, and no broker
serves it. An import in place can then be started again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from uuid import UUID, uuid4

from barnabas.broker.config import tables
from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.config.effective import EffectiveConfig
from barnabas.broker.config.rules import SettingRules
from barnabas.broker.internal_topics.internal_topics import (
    InternalTopicSpec,
    offsets_topic,
    transactions_topic,
)
from barnabas.cli.kafka_import.classic_groups import FoundClassicGroup, read_classic_groups
from barnabas.cli.kafka_import.consumer_groups import FoundConsumerGroup, read_consumer_groups
from barnabas.cli.kafka_import.kafka_directory import KafkaDirectory
from barnabas.cli.kafka_import.segment_files import add_share_indexes, copy_partition, set_aside, sync
from barnabas.cli.kafka_import.share_groups import FoundGroup, image_of, read_groups, read_share_states
from barnabas.cli.kafka_import.transactions import (
    read_pending_offsets,
    read_transactions,
)
from barnabas.coordinator.metadata.client_quotas import quota_record
from barnabas.coordinator.metadata.image import ConfigResource, MetadataImage, ResourceType
from barnabas.coordinator.metadata.scram_credentials import count_users
from barnabas.coordinator.metadata.topic_names import (
    METADATA_TOPIC,
    METADATA_TOPIC_ID,
    OFFSETS_TOPIC,
    TRANSACTION_STATE_TOPIC,
)
from barnabas.coordinator.replay.key_partition import partition_of_key
from barnabas.protocol.classic_group_records import encode_classic_key, encode_classic_value
from barnabas.protocol.errors import ApiError
from barnabas.protocol.metadata_records import (
    ConfigRecord,
    MetadataRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    TopicRecord,
    encode_metadata_record,
)
from barnabas.protocol.share_group_records import encode_share_group_key, encode_share_group_value
from barnabas.share.log_store.partition_state_store import PartitionStateStore
from barnabas.storage.directory.checkpoints import CLEANED_FILE, LOG_START_FILE, RECOVERY_POINT_FILE
from barnabas.storage.directory.clean_shutdown import CLEAN_SHUTDOWN_FILE
from barnabas.storage.directory.directory_kind import UNFINISHED_IMPORT_FILE
from barnabas.storage.directory.log_directory import LogDirectory
from barnabas.storage.errors import InvalidDirectory
from barnabas.storage.filesystem import RealFileSystem
from barnabas.storage.format.checkpoint_file import encode_offsets
from barnabas.storage.log_config import LogConfig
from barnabas.storage.topic_partition import TopicPartition

_RECORDS_PER_BATCH = 1000
_KEPT = LogConfig(retention_ms=-1)
"""Nothing is deleted during the import."""


class Imported(NamedTuple):
    """The numbers of imported things; `left_out` has a sentence for each thing that was not imported."""

    topic_count: int
    partition_count: int
    group_count: int
    scram_user_count: int
    left_out: tuple[str, ...]


def import_directory(
    source: Path, target: Path, config: BrokerConfig, wall_ms: Callable[[], int], *, link: bool
) -> Imported:
    """Import into `target`, which is missing or empty. Raises StorageError, OSError."""
    directory = KafkaDirectory(source)
    directory.check_complete()
    if target.resolve().is_relative_to(source.resolve()):
        raise InvalidDirectory(
            f"{target} is at or below Kafka's directory {source}, which must not change: "
            "name a directory outside of it."
        )
    target.mkdir(parents=True, exist_ok=True)
    if any(target.iterdir()):
        raise InvalidDirectory(f"{target} is not empty: name a new directory, or empty this one.")
    (target / UNFINISHED_IMPORT_FILE).touch()
    recovery_points = _recovery_points(directory)
    for key in _partitions(directory):
        linked_below = recovery_points.get(key, 0) if link else 0
        copy_partition(directory.partition_directory(*key), target / key.directory_name, linked_below)
    return _finish(directory, target, config, wall_ms)


def take_over(path: Path, config: BrokerConfig, wall_ms: Callable[[], int]) -> Imported:
    """Import in place. Raises StorageError, OSError."""
    directory = KafkaDirectory(path)
    directory.check_complete()
    # Unreadable data is refused before anything is changed.
    read_groups(directory)
    read_classic_groups(directory, (), wall_ms())
    read_consumer_groups(directory)
    read_share_states(directory)
    read_transactions(directory)
    (path / UNFINISHED_IMPORT_FILE).touch()
    set_aside(path)
    for key in _partitions(directory):
        add_share_indexes(path / key.directory_name)
    return _finish(directory, path, config, wall_ms)


def _finish(
    directory: KafkaDirectory, path: Path, config: BrokerConfig, wall_ms: Callable[[], int]
) -> Imported:
    checkpoints = {
        RECOVERY_POINT_FILE: _recovery_points(directory),
        LOG_START_FILE: directory.offsets(LOG_START_FILE),
        CLEANED_FILE: directory.offsets(CLEANED_FILE),
    }
    wanted = set(_partitions(directory))
    for name, found in checkpoints.items():
        offsets: dict[tuple[str, int], int] = {key: found[key] for key in found if key in wanted}
        (path / name).write_bytes(encode_offsets(offsets))
    imported = asyncio.run(_Import(directory, config, wall_ms).write(path))
    (path / UNFINISHED_IMPORT_FILE).unlink()
    sync(path)
    return imported


def _recovery_points(directory: KafkaDirectory) -> dict[tuple[str, int], int]:
    """Kafka's recovery points; none if Kafka was killed.

    Logs that a killed Kafka compacted may have holes that no file records. A start without recovery points
    accepts holes, and reads every log once.
    """
    was_closed = (directory.path / CLEAN_SHUTDOWN_FILE).exists()
    return directory.offsets(RECOVERY_POINT_FILE) if was_closed else {}


class _Import:
    """Writes the broker's own records through its own logs."""

    def __init__(self, directory: KafkaDirectory, config: BrokerConfig, wall_ms: Callable[[], int]) -> None:
        self._directory = directory
        self._config = config
        self._wall_ms = wall_ms
        self._groups = read_groups(directory)
        names = {topic.name for topic in directory.topics}
        self._classic_groups = read_classic_groups(directory, names, wall_ms())
        self._consumer_groups = read_consumer_groups(directory)
        self._transactions = read_transactions(directory)
        self._topics = {topic.topic_id: topic for topic in directory.topics}
        self._offsets_topic_id = uuid4()
        self._transactions_topic_id = uuid4()
        self._left_out = _access_rules_left_out(directory.metadata.access_rule_count)
        self._pending_offsets = read_pending_offsets(directory)
        self._offsets_topic = self._with_kafkas_count(offsets_topic(config))
        self._transactions_topic = self._with_kafkas_count(transactions_topic(config))
        topics = directory.metadata.topics.values()
        epochs = (epoch for topic in topics for epoch in topic.leader_epochs.values())
        self._leader_epoch = max(epochs, default=0) + 1
        """Above all epochs in Kafka's logs, including those of its coordinators; the next start continues
        from here.
        """

    def _with_kafkas_count(self, spec: InternalTopicSpec) -> InternalTopicSpec:
        """Barnabas's topic with Kafka's number of partitions, because transactions name groups' offsets by
        the partition's number.
        """
        count = len(self._directory.partitions_of(spec.name))
        return spec._replace(partition_count=count) if count else spec

    async def write(self, path: Path) -> Imported:
        logs = await LogDirectory.open(
            RealFileSystem(),
            str(path),
            node_id=self._config.node_id,
            cluster_id=self._directory.properties.cluster_id,
            wall_ms=self._wall_ms,
        )
        logs.leader_epoch = self._leader_epoch
        try:
            await self._write_metadata(logs)
            incarnations = {
                group.group_id: self._wall_ms() + number for number, group in enumerate(self._groups)
            }
            for group in self._groups:
                await self._write_group(logs, group, incarnations[group.group_id])
            for classic in self._classic_groups:
                await self._write_classic_group(logs, classic)
            for consumer in self._consumer_groups:
                await self._write_consumer_group(logs, consumer)
            await self._write_share_states(logs, incarnations)
            await self._write_transactions(logs)
        finally:
            await logs.close()
        partition_count = sum(len(topic.leader_epochs) for topic in self._directory.topics)
        others = {group.group_id for group in self._classic_groups}
        others.update(group.group_id for group in self._consumer_groups)
        group_count = len(self._groups) + len(others)
        return Imported(
            topic_count=len(self._topics),
            partition_count=partition_count,
            group_count=group_count,
            scram_user_count=count_users(self._directory.metadata.scram_credentials),
            left_out=tuple(self._left_out),
        )

    async def _write_metadata(self, logs: LogDirectory) -> None:
        log_config = self._config.metadata_log_config()
        log = await logs.log(METADATA_TOPIC, 0, METADATA_TOPIC_ID, log_config)
        values = [encode_metadata_record(record) for record in self._metadata(logs.directory_id)]
        for start in range(0, len(values), _RECORDS_PER_BATCH):
            some = values[start : start + _RECORDS_PER_BATCH]
            await log.append_records([(None, value) for value in some], self._wall_ms())

    def _metadata(self, directory_id: UUID) -> Iterator[MetadataRecord]:
        yield RegisterBrokerRecord(
            broker_id=self._config.node_id,
            incarnation_id=uuid4(),
            broker_epoch=self._leader_epoch,
            end_points=(),
            features=(),
            rack=None,
            fenced=True,
            log_dirs=(directory_id,),
        )
        for topic in self._directory.topics:
            yield from self._topic(topic.name, topic.topic_id, len(topic.leader_epochs), directory_id)
        if self._directory.partitions_of(OFFSETS_TOPIC):
            yield from self._internal_topic(self._offsets_topic, self._offsets_topic_id, directory_id)
        if self._directory.partitions_of(TRANSACTION_STATE_TOPIC):
            yield from self._internal_topic(
                self._transactions_topic, self._transactions_topic_id, directory_id
            )
        for resource, configs in self._taken_configs():
            yield from self._configs(resource.resource_type, resource.name, dict(configs))
        yield from self._directory.metadata.scram_credentials.values()
        for entity, quotas in self._directory.metadata.client_quotas.items():
            for key, quota in quotas.items():
                yield quota_record(entity, key, quota)
        if self._directory.metadata.next_producer_id:
            yield ProducerIdsRecord(broker_id=-1, next_producer_id=self._directory.metadata.next_producer_id)

    def _topic(
        self, name: str, topic_id: UUID, partition_count: int, directory_id: UUID
    ) -> Iterator[MetadataRecord]:
        node_id = self._config.node_id
        yield TopicRecord(name=name, topic_id=topic_id)
        for partition in range(partition_count):
            yield PartitionRecord(
                partition_id=partition,
                topic_id=topic_id,
                replicas=(node_id,),
                isr=(node_id,),
                leader=node_id,
                leader_epoch=self._leader_epoch,
                partition_epoch=0,
                directories=(directory_id,),
            )

    def _internal_topic(
        self, spec: InternalTopicSpec, topic_id: UUID, directory_id: UUID
    ) -> Iterator[MetadataRecord]:
        yield from self._topic(spec.name, topic_id, spec.partition_count, directory_id)
        yield from self._configs(ResourceType.TOPIC, spec.name, dict(spec.configs))

    def _configs(
        self, resource_type: int, name: str, configs: dict[str, str | None]
    ) -> Iterator[MetadataRecord]:
        for key, value in configs.items():
            yield ConfigRecord(resource_type=resource_type, resource_name=name, name=key, value=value)

    def _taken_configs(self) -> Iterator[tuple[ConfigResource, dict[str, str]]]:
        """The settings of topics and groups that Barnabas has and allows."""
        rules = SettingRules(self._config, EffectiveConfig(self._config, MetadataImage()))
        names = {topic.name for topic in self._topics.values()}
        known = {ResourceType.TOPIC: tables.TOPIC, ResourceType.GROUP: tables.GROUP}
        for (resource_type, name), configs in self._directory.metadata.configs.items():
            table = known.get(ResourceType(resource_type))
            if table is None or (resource_type == ResourceType.TOPIC and name not in names):
                continue
            resource = ConfigResource(resource_type, name)
            taken = {
                key: value
                for key, value in configs.items()
                if key in table and self._is_allowed(rules, resource, key, value)
            }
            try:
                rules.check(resource, taken)
            except ApiError as error:
                self._left_out.append(f"the settings of {name}: {error}")
                continue
            unknown = sorted(configs.keys() - table.keys())
            if unknown:
                self._left_out.append(f"settings of {name} that are unknown here: {', '.join(unknown)}")
            yield resource, taken

    def _is_allowed(self, rules: SettingRules, resource: ConfigResource, key: str, value: str) -> bool:
        try:
            rules.check(resource, {key: value})
        except ApiError as error:
            self._left_out.append(f"a setting of {resource.name}: {error}")
            return False
        return True

    async def _write_group(self, logs: LogDirectory, group: FoundGroup, incarnation: int) -> None:
        partition = partition_of_key(group.group_id, self._offsets_topic.partition_count)
        log = await logs.log(OFFSETS_TOPIC, partition, self._offsets_topic_id, _KEPT)
        records = [
            (encode_share_group_key(key), encode_share_group_value(value))
            for key, value in group.imported(incarnation, set(self._topics))
        ]
        await log.append_records(records, self._wall_ms())

    async def _write_classic_group(self, logs: LogDirectory, group: FoundClassicGroup) -> None:
        partition = partition_of_key(group.group_id, self._offsets_topic.partition_count)
        log = await logs.log(OFFSETS_TOPIC, partition, self._offsets_topic_id, _KEPT)
        records = [(encode_classic_key(key), encode_classic_value(value)) for key, value in group.records]
        for start in range(0, len(records), _RECORDS_PER_BATCH):
            await log.append_records(records[start : start + _RECORDS_PER_BATCH], self._wall_ms())

    async def _write_consumer_group(self, logs: LogDirectory, group: FoundConsumerGroup) -> None:
        partition = partition_of_key(group.group_id, self._offsets_topic.partition_count)
        log = await logs.log(OFFSETS_TOPIC, partition, self._offsets_topic_id, _KEPT)
        await log.append_records([*group.records], self._wall_ms())

    async def _write_share_states(self, logs: LogDirectory, incarnations: dict[str, int]) -> None:
        for key, state in read_share_states(self._directory).items():
            topic = self._topics.get(key.topic_id)
            if topic is None or key.group_id not in incarnations:
                continue
            log = await logs.log(topic.name, key.partition, topic.topic_id, _KEPT)
            image = image_of(state, incarnations[key.group_id], log.control_runs, log.high_watermark)
            if image is not None:
                await PartitionStateStore(log, self._wall_ms, 1).reset(key.group_id, image)

    async def _write_transactions(self, logs: LogDirectory) -> None:
        for pending in self._pending_offsets:
            log = await logs.log(OFFSETS_TOPIC, pending.partition, self._offsets_topic_id, _KEPT)
            for start in range(0, len(pending.records), _RECORDS_PER_BATCH):
                some = pending.records[start : start + _RECORDS_PER_BATCH]
                await log.append_records(some, self._wall_ms(), producer=pending.producer)
        partition_count = self._transactions_topic.partition_count
        for transaction in self._transactions:
            partition = partition_of_key(transaction.transactional_id, partition_count)
            log = await logs.log(TRANSACTION_STATE_TOPIC, partition, self._transactions_topic_id, _KEPT)
            await log.append_records([transaction.record], self._wall_ms())


def _access_rules_left_out(rule_count: int) -> list[str]:
    if not rule_count:
        return []
    return [f"ACLs ({rule_count}): this broker has no access control, so every client may do everything"]


def _partitions(directory: KafkaDirectory) -> list[TopicPartition]:
    return [
        TopicPartition(topic.name, partition)
        for topic in directory.topics
        for partition in sorted(topic.leader_epochs)
    ]
