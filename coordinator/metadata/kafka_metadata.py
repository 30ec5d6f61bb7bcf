"""Topics, settings and producer ids in a metadata log of Apache Kafka, for an import of its data.

Unlike `image.py`, which refuses unknown records, this skips records about Kafka's own cluster: controllers,
quotas, users, tokens, ACLs. It also skips which node led a partition, but not the leader epoch, because
epochs must continue from there. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isfinite
from uuid import UUID

from barnabas.coordinator.metadata.client_quotas import QuotaEntity, quota_entity
from barnabas.coordinator.metadata.scram_credentials import CredentialKey
from barnabas.protocol.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ClientQuotaRecord,
    ConfigRecord,
    EndTransactionRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    SnapshotFooterRecord,
    TopicRecord,
    UserScramCredentialRecord,
    decode_metadata_control,
    decode_metadata_record,
)
from barnabas.protocol.record_batch import iterate_headers
from barnabas.protocol.records import iterate_records
from barnabas.protocol.varint import Buffer, RecordFormatError, read_unsigned_varint

_TYPES_TAKEN = frozenset({2, 3, 4, 5, 9, 11, 14, 15, 22, 23, 24, 25})
"""TopicRecord, PartitionRecord, ConfigRecord, PartitionChangeRecord, RemoveTopicRecord, those of credentials
and quotas, ProducerIdsRecord and those of transactions, by Kafka's numbers."""
_ACCESS_RULE, _REMOVED_ACCESS_RULE = 18, 19
"""AccessControlEntryRecord and RemoveAccessControlEntryRecord: counted, not imported."""
_LEADER_UNCHANGED = -2
_TOPIC_RESOURCE = 2


@dataclass(slots=True)
class KafkaTopic:
    """A topic; `leader_epochs` by partition, incomplete while its records are replayed."""

    name: str
    topic_id: UUID
    leader_epochs: dict[int, int] = field(default_factory=dict[int, int])


class KafkaMetadata:
    """Topics by id, settings by resource type and name, quotas by entity, credentials by user and mechanism,
    and the first producer id that was never given out.
    """

    def __init__(self) -> None:
        self.topics: dict[UUID, KafkaTopic] = {}
        self.configs: dict[tuple[int, str], dict[str, str]] = {}
        self.client_quotas: dict[QuotaEntity, dict[str, float]] = {}
        self.scram_credentials: dict[CredentialKey, UserScramCredentialRecord] = {}
        self.next_producer_id = 0
        self.access_rule_count = 0
        """The number of ACLs. An import leaves them out and reports it."""
        self._transaction: list[MetadataRecord] | None = None

    def replay_snapshot(self, data: Buffer) -> None:
        """Read a snapshot file; RecordFormatError if it is damaged or has no end."""
        footer = None
        for position, header in iterate_headers(data):
            if header.is_control:
                for record in iterate_records(data, position):
                    footer = decode_metadata_control(record.key, record.value)
        if not isinstance(footer, SnapshotFooterRecord):
            raise RecordFormatError("A snapshot does not end with its footer.")
        self.replay_log(data, 0)

    def replay_log(self, data: Buffer, from_offset: int) -> None:
        """Read the records at or above `from_offset` of a segment, up to the last whole batch.

        RecordFormatError if one is malformed, or belongs to an unknown topic.
        """
        try:
            self._replay_records(self._records(data, from_offset))
        except KeyError as error:
            raise RecordFormatError(f"There is no topic or partition {error}.") from error

    def _records(self, data: Buffer, from_offset: int) -> Iterator[MetadataRecord]:
        """The records of the imported types, in the order of the log."""
        for position, header in iterate_headers(data):
            if header.is_control or header.last_offset < from_offset:
                continue
            for record in iterate_records(data, position):
                if record.offset >= from_offset and record.value is not None:
                    number = _type_of(record.value)
                    self.access_rule_count += (number == _ACCESS_RULE) - (number == _REMOVED_ACCESS_RULE)
                    if number in _TYPES_TAKEN:
                        yield decode_metadata_record(record.value)

    def _replay_records(self, records: Iterator[MetadataRecord]) -> None:
        for record in records:
            match record:
                case BeginTransactionRecord():
                    self._transaction = []
                case AbortTransactionRecord():
                    self._transaction = None
                case EndTransactionRecord():
                    ended, self._transaction = self._transaction or [], None
                    for buffered in ended:
                        self._replay(buffered)
                case _ if self._transaction is not None:
                    self._transaction.append(record)
                case _:
                    self._replay(record)

    def _replay(self, record: MetadataRecord) -> None:
        match record:
            case TopicRecord():
                self.topics[record.topic_id] = KafkaTopic(record.name, record.topic_id)
            case PartitionRecord():
                self.topics[record.topic_id].leader_epochs[record.partition_id] = record.leader_epoch
            case PartitionChangeRecord() if record.leader != _LEADER_UNCHANGED:
                self.topics[record.topic_id].leader_epochs[record.partition_id] += 1
            case RemoveTopicRecord():
                topic = self.topics.pop(record.topic_id)
                self.configs.pop((_TOPIC_RESOURCE, topic.name), None)
            case ConfigRecord():
                self._replay_config(record)
            case ClientQuotaRecord():
                self._replay_client_quota(record)
            case UserScramCredentialRecord():
                self.scram_credentials[record.name, record.mechanism] = record
            case RemoveUserScramCredentialRecord():
                self.scram_credentials.pop((record.name, record.mechanism), None)
            case ProducerIdsRecord():
                self.next_producer_id = record.next_producer_id
            case _:
                pass

    def _replay_client_quota(self, record: ClientQuotaRecord) -> None:
        """A quota without a limit that counts, which Kafka accepts, is left out."""
        entity = quota_entity({part.entity_type: part.entity_name for part in record.entity})
        quotas = self.client_quotas.setdefault(entity, {})
        quotas.pop(record.key, None)
        if not record.remove and isfinite(record.value):
            quotas[record.key] = record.value

    def _replay_config(self, record: ConfigRecord) -> None:
        configs = self.configs.setdefault((record.resource_type, record.resource_name), {})
        if record.value is None:
            configs.pop(record.name, None)
        else:
            configs[record.name] = record.value


def _type_of(value: Buffer) -> int:
    """Kafka's number of a metadata record's type; it comes after the version of the frame."""
    _, after_version = read_unsigned_varint(value, 0)
    number, _ = read_unsigned_varint(value, after_version)
    return number
