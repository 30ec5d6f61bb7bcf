"""The cluster's metadata after the replayed records. Only `MetadataImage.replay` changes it, except the list
of deleted topics whose logs are not removed yet.

The records are KIP-631's. One rule is Barnabas's own: a node leads its partitions with the epoch of its
registration, which each start of the node raises. So a start is one record for any number of partitions, and
a client can tell that the tail of a log may have been lost in the crash before it. Pure.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType
from typing import NamedTuple
from uuid import UUID

from barnabas.coordinator.metadata.client_quotas import QuotaEntity, quota_entity, quota_record
from barnabas.coordinator.metadata.features import METADATA_VERSION
from barnabas.coordinator.metadata.scram_credentials import CredentialKey
from barnabas.coordinator.metadata.topic_names import collision_key, is_internal
from barnabas.protocol.metadata_records import (
    BrokerRegistrationChangeRecord,
    ClientQuotaRecord,
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UserScramCredentialRecord,
)

_NO_CONFIGS: Mapping[str, str] = MappingProxyType({})
_LEADER_UNCHANGED = -2


class ResourceType(IntEnum):
    """The kind of a configuration's owner, by its id on the wire and in records."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigResource(NamedTuple):
    """One topic, broker or group as the owner of settings; the broker "" is the default for all brokers."""

    resource_type: int
    name: str


@dataclass(slots=True, kw_only=True)
class Partition:
    """One partition. `replicas` and `isr` are node ids, the preferred leader first; `directories` go with
    `replicas`.
    """

    index: int
    leader: int
    leader_epoch: int
    partition_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    directories: tuple[UUID, ...]


@dataclass(slots=True)
class Topic:
    """One topic; partition `i` is `partitions[i]`. A topic that was deleted and created again is another
    object with another id.
    """

    name: str
    topic_id: UUID
    partitions: list[Partition] = field(default_factory=list[Partition])
    is_internal: bool = field(init=False)
    """Whether it is one of the broker's own, by its name."""

    def __post_init__(self) -> None:
        self.is_internal = is_internal(self.name)


@dataclass(slots=True)
class MetadataChanges:
    """The changes of one decision's records, for the listeners."""

    created: list[Topic] = field(default_factory=list[Topic])
    deleted: list[Topic] = field(default_factory=list[Topic])
    grown: list[Topic] = field(default_factory=list[Topic])
    """Topics with new partitions, each once."""
    configs: list[ConfigResource] = field(default_factory=list[ConfigResource])
    """Resources with a changed setting, each once. The settings of a deleted topic are not listed."""
    features: list[str] = field(default_factory=list[str])
    """Features whose finalized level was set, also to the same value."""
    client_quotas: list[QuotaEntity] = field(default_factory=list[QuotaEntity])
    """The entities whose quotas changed, each once."""
    superseded_count: int = 0
    """The number of earlier records that are no longer in force: replaced, or deleted with a topic."""
    _created_ids: set[UUID] = field(default_factory=set[UUID])
    _configured: set[ConfigResource] = field(default_factory=set[ConfigResource])

    def note_created(self, topic: Topic) -> None:
        self.created.append(topic)
        self._created_ids.add(topic.topic_id)

    def note_partition(self, topic: Topic) -> None:
        """A topic got a partition. That is listed unless the topic itself is new or is listed already."""
        has_grown = bool(self.grown) and self.grown[-1] is topic
        if topic.topic_id not in self._created_ids and not has_grown:
            self.grown.append(topic)

    def note_config(self, resource: ConfigResource) -> None:
        if resource not in self._configured:
            self._configured.add(resource)
            self.configs.append(resource)


class MetadataImage:
    """Topics by name and by id, settings, features, nodes, quotas, credentials, and the next producer id.

    The image is one object for the broker's whole life. It may be read at any time; it may change at an
    await.
    """

    def __init__(self) -> None:
        self.topics_by_name: dict[str, Topic] = {}
        self.topics_by_id: dict[UUID, Topic] = {}
        self.topics_by_number: dict[int, Topic] = {}
        """The same by the number of the id, whose hash is faster."""
        self.deleted_topics: dict[UUID, str] = {}
        """By id, the names of deleted topics whose logs may still be on the disk."""
        self.features: dict[str, int] = {}
        """Finalized levels; a feature at level 0 is not listed."""
        self.brokers: dict[int, RegisterBrokerRecord] = {}
        self.next_producer_id = 0
        """The first id of the next block."""
        self.config_revision = 0
        """Raised by every changed setting or feature, for caches of values computed from them."""
        self.client_quotas: dict[QuotaEntity, dict[str, float]] = {}
        """Quotas by key, by entity; no entity is empty."""
        self.scram_credentials: dict[CredentialKey, UserScramCredentialRecord] = {}
        self.topics_revision = 0
        """Raised by every new or deleted topic or partition, for caches of look-ups."""
        self._configs: dict[ConfigResource, dict[str, str]] = {}
        self._names_by_collision_key: dict[str, list[str]] = {}

    # --- reading ----------------------------------------------------------------------------------

    def broker_epoch(self, broker_id: int) -> int:
        """The number of earlier starts of the node; -1 before the first one."""
        registration = self.brokers.get(broker_id)
        return -1 if registration is None else registration.broker_epoch

    def feature_level(self, name: str) -> int:
        """The finalized level of a feature; 0 without one."""
        return self.features.get(name, 0)

    def has_topic(self, topic_id: UUID) -> bool:
        return topic_id in self.topics_by_id

    def partition(self, topic_name: str, index: int) -> Partition | None:
        topic = self.topics_by_name.get(topic_name)
        return topic.partitions[index] if topic is not None and 0 <= index < len(topic.partitions) else None

    def configs(self, resource_type: int, name: str) -> Mapping[str, str]:
        """The resource's own settings; empty without any, or if it does not exist."""
        return self._configs.get(ConfigResource(resource_type, name), _NO_CONFIGS)

    def configured_names(self, resource_type: int) -> list[str]:
        """The names of the resources of a type with settings of their own."""
        return [resource.name for resource in self._configs if resource.resource_type == resource_type]

    def colliding_name(self, name: str) -> str | None:
        """A topic with this name, or with a name that differs only in '.' and '_'; None if there is none."""
        names = self._names_by_collision_key.get(collision_key(name))
        return names[0] if names else None

    def to_records(self) -> Iterator[MetadataRecord]:
        """The records that make this image from an empty one. `metadata.version` is the first, as readers
        expect.

        A deleted topic whose logs may still exist is created and deleted in them, before topics that may have
        its name: a start after a crash has to know that it was deleted.
        """
        for name in sorted(self.features, key=lambda name: (name != METADATA_VERSION, name)):
            yield FeatureLevelRecord(name=name, feature_level=self.features[name])
        yield from self.brokers.values()
        for topic_id, name in self.deleted_topics.items():
            yield TopicRecord(name=name, topic_id=topic_id)
            yield RemoveTopicRecord(topic_id=topic_id)
        for topic in self.topics_by_name.values():
            yield TopicRecord(name=topic.name, topic_id=topic.topic_id)
            for partition in topic.partitions:
                yield partition_record(topic.topic_id, partition)
        for resource, configs in self._configs.items():
            for name, value in configs.items():
                yield ConfigRecord(
                    resource_type=resource.resource_type, resource_name=resource.name, name=name, value=value
                )
        yield from self.scram_credentials.values()
        for entity, quotas in self.client_quotas.items():
            for key, quota in quotas.items():
                yield quota_record(entity, key, quota)
        if self.next_producer_id:
            yield ProducerIdsRecord(broker_id=-1, next_producer_id=self.next_producer_id)

    def logs_removed(self, topic_id: UUID) -> None:
        """All logs of a deleted topic were removed from the disk, durably."""
        self.deleted_topics.pop(topic_id, None)

    # --- replay -----------------------------------------------------------------------------------

    def replay(self, record: MetadataRecord, changes: MetadataChanges) -> None:
        """Apply one record, in the order of the log, and add its changes to `changes`."""
        match record:
            case TopicRecord():
                self._replay_topic(record, changes)
            case PartitionRecord():
                self._replay_partition(record, changes)
            case PartitionChangeRecord():
                self._replay_partition_change(record, changes)
            case RemoveTopicRecord():
                self._replay_remove_topic(record, changes)
            case ConfigRecord():
                self._replay_config(record, changes)
            case ProducerIdsRecord():
                changes.superseded_count += self.next_producer_id > 0
                self.next_producer_id = record.next_producer_id
            case FeatureLevelRecord():
                self._replay_feature_level(record, changes)
            case ClientQuotaRecord():
                self._replay_client_quota(record, changes)
            case UserScramCredentialRecord():
                key = record.name, record.mechanism
                changes.superseded_count += key in self.scram_credentials
                self.scram_credentials[key] = record
            case RemoveUserScramCredentialRecord():
                changes.superseded_count += 1
                del self.scram_credentials[record.name, record.mechanism]
            case RegisterBrokerRecord():
                self._replay_register_broker(record, changes)
            case NoOpRecord() | BrokerRegistrationChangeRecord():
                pass
            case _:
                raise ValueError(
                    f"{type(record).__name__} in a metadata log of this broker, which writes none."
                )

    def _replay_topic(self, record: TopicRecord, changes: MetadataChanges) -> None:
        assert record.name not in self.topics_by_name, f"topic {record.name} was created twice"
        topic = Topic(record.name, record.topic_id)
        self.topics_by_name[topic.name] = self.topics_by_id[topic.topic_id] = topic
        self.topics_by_number[topic.topic_id.int] = topic
        self._names_by_collision_key.setdefault(collision_key(topic.name), []).append(topic.name)
        self.topics_revision += 1
        changes.note_created(topic)

    def _replay_partition(self, record: PartitionRecord, changes: MetadataChanges) -> None:
        topic = self.topics_by_id[record.topic_id]
        assert record.partition_id == len(topic.partitions), f"partitions of {topic.name} out of order"
        topic.partitions.append(
            Partition(
                index=record.partition_id,
                leader=record.leader,
                leader_epoch=record.leader_epoch,
                partition_epoch=record.partition_epoch,
                replicas=record.replicas,
                isr=record.isr,
                directories=record.directories,
            )
        )
        self.topics_revision += 1
        changes.note_partition(topic)

    def _replay_partition_change(self, record: PartitionChangeRecord, changes: MetadataChanges) -> None:
        changes.superseded_count += 1
        partition = self.topics_by_id[record.topic_id].partitions[record.partition_id]
        partition.partition_epoch += 1
        if record.leader != _LEADER_UNCHANGED:
            partition.leader = record.leader
            partition.leader_epoch += 1
        partition.isr = partition.isr if record.isr is None else record.isr
        partition.replicas = partition.replicas if record.replicas is None else record.replicas
        partition.directories = partition.directories if record.directories is None else record.directories

    def _replay_remove_topic(self, record: RemoveTopicRecord, changes: MetadataChanges) -> None:
        topic = self.topics_by_id.pop(record.topic_id)
        del self.topics_by_number[record.topic_id.int]
        del self.topics_by_name[topic.name]
        self.deleted_topics[topic.topic_id] = topic.name
        self.topics_revision += 1
        key = collision_key(topic.name)
        self._names_by_collision_key[key].remove(topic.name)
        if not self._names_by_collision_key[key]:
            del self._names_by_collision_key[key]
        configs = self._configs.pop(ConfigResource(ResourceType.TOPIC, topic.name), None)
        if configs is not None:
            self.config_revision += 1
        changes.superseded_count += 1 + len(topic.partitions) + len(configs or ())
        changes.deleted.append(topic)

    def _replay_config(self, record: ConfigRecord, changes: MetadataChanges) -> None:
        resource = ConfigResource(record.resource_type, record.resource_name)
        configs = self._configs.setdefault(resource, {})
        changes.superseded_count += record.name in configs
        if record.value is None:
            configs.pop(record.name, None)
        else:
            configs[record.name] = record.value
        if not configs:
            del self._configs[resource]
        self.config_revision += 1
        changes.note_config(resource)

    def _replay_feature_level(self, record: FeatureLevelRecord, changes: MetadataChanges) -> None:
        changes.superseded_count += record.name in self.features
        self.config_revision += 1
        if record.feature_level:
            self.features[record.name] = record.feature_level
        else:
            self.features.pop(record.name, None)
        changes.features.append(record.name)

    def _replay_client_quota(self, record: ClientQuotaRecord, changes: MetadataChanges) -> None:
        entity = quota_entity({part.entity_type: part.entity_name for part in record.entity})
        quotas = self.client_quotas.setdefault(entity, {})
        changes.superseded_count += record.key in quotas
        if record.remove:
            quotas.pop(record.key, None)
        else:
            quotas[record.key] = record.value
        if not quotas:
            del self.client_quotas[entity]
        changes.client_quotas.append(entity)

    def _replay_register_broker(self, record: RegisterBrokerRecord, changes: MetadataChanges) -> None:
        changes.superseded_count += record.broker_id in self.brokers
        self.brokers[record.broker_id] = record
        for topic in self.topics_by_name.values():
            for partition in topic.partitions:
                if partition.leader == record.broker_id:
                    partition.leader_epoch = max(partition.leader_epoch, record.broker_epoch)


def partition_record(topic_id: UUID, partition: Partition) -> PartitionRecord:
    """The record that creates `partition` in its present state."""
    return PartitionRecord(
        partition_id=partition.index,
        topic_id=topic_id,
        replicas=partition.replicas,
        isr=partition.isr,
        leader=partition.leader,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        directories=partition.directories,
    )
