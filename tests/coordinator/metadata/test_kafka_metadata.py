"""Reading a metadata log of Apache Kafka, which has records that this broker does not know."""

import math
from uuid import UUID

import pytest

from barnabas.coordinator.metadata.kafka_metadata import KafkaMetadata
from barnabas.coordinator.metadata.snapshot import SnapshotId, encode_snapshot
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
    QuotaEntityData,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UserScramCredentialRecord,
    encode_metadata_record,
)
from barnabas.protocol.record_batch import CONTROL_FLAG, build_batch
from barnabas.protocol.varint import RecordFormatError, unsigned_varint

TOPIC_ID = UUID(int=5)
ACCESS_CONTROL_ENTRY = unsigned_varint(1) + unsigned_varint(18) + unsigned_varint(0) + b"whatever"
"""A record of a type that only Kafka knows."""


def topic_of(*leader_epochs: int) -> list[MetadataRecord]:
    partitions = [
        PartitionRecord(partition_id=index, topic_id=TOPIC_ID, replicas=(1,), isr=(1,), leader_epoch=epoch)
        for index, epoch in enumerate(leader_epochs)
    ]
    return [TopicRecord(name="t", topic_id=TOPIC_ID), *partitions]


def log_of(records: list[MetadataRecord], base_offset: int = 0) -> bytes:
    """A batch of them, with a record of Kafka's own among them and a control batch in front."""
    values = [ACCESS_CONTROL_ENTRY, *map(encode_metadata_record, records)]
    control = build_batch(
        base_offset, [(b"\0\0\0\x06", b"voters")], leader_epoch=1, timestamp_ms=0, attributes=CONTROL_FLAG
    )
    batch = build_batch(base_offset + 1, [(None, value) for value in values], leader_epoch=1, timestamp_ms=0)
    return control + batch


def replayed(*records: MetadataRecord) -> KafkaMetadata:
    metadata = KafkaMetadata()
    metadata.replay_log(log_of(list(records)), 0)
    return metadata


def test_topics_have_their_ids_and_the_epochs_that_their_leaders_came_to() -> None:
    changed = PartitionChangeRecord(topic_id=TOPIC_ID, partition_id=1, leader=2)
    shrunk = PartitionChangeRecord(topic_id=TOPIC_ID, partition_id=0, isr=(1,))
    (topic,) = replayed(*topic_of(3, 4), changed, shrunk).topics.values()
    assert (topic.name, topic.topic_id, topic.leader_epochs) == ("t", TOPIC_ID, {0: 3, 1: 5})


def test_a_topic_that_was_deleted_is_gone_with_its_settings() -> None:
    setting = ConfigRecord(resource_type=2, resource_name="t", name="retention.ms", value="1")
    metadata = replayed(*topic_of(0), setting, RemoveTopicRecord(topic_id=TOPIC_ID))
    assert (metadata.topics, metadata.configs) == ({}, {})


def test_the_last_setting_counts_and_one_that_was_unset_is_none() -> None:
    settings = [
        ConfigRecord(resource_type=32, resource_name="g", name=name, value=value)
        for name, value in [("a", "1"), ("a", "2"), ("b", "3"), ("b", None)]
    ]
    assert replayed(*settings).configs == {(32, "g"): {"a": "2"}}


def quota(value: float, *, remove: bool = False, key: str = "producer_byte_rate") -> ClientQuotaRecord:
    entity = (QuotaEntityData(entity_type="client-id", entity_name="c"),)
    return ClientQuotaRecord(entity=entity, key=key, value=value, remove=remove)


def test_the_last_quota_counts_and_one_without_a_bound_does_not() -> None:
    metadata = replayed(
        quota(1), quota(2), quota(3, key="consumer_byte_rate"), quota(math.inf, key="request_percentage")
    )
    assert metadata.client_quotas == {
        (("client-id", "c"),): {"producer_byte_rate": 2, "consumer_byte_rate": 3}
    }
    assert replayed(quota(1), quota(0, remove=True)).client_quotas == {(("client-id", "c"),): {}}


def test_credentials_are_taken_until_they_are_removed() -> None:
    credentials = [
        UserScramCredentialRecord(
            name=name, mechanism=1, salt=b"", stored_key=b"", server_key=b"", iterations=4096
        )
        for name in ("a", "b")
    ]
    removed = RemoveUserScramCredentialRecord(name="a", mechanism=1)
    assert replayed(*credentials, removed).scram_credentials == {("b", 1): credentials[1]}


def test_producer_ids_go_on_behind_the_last_block() -> None:
    assert replayed(ProducerIdsRecord(broker_id=1, next_producer_id=3000)).next_producer_id == 3000


@pytest.mark.parametrize(("end", "names"), [(EndTransactionRecord, ["t"]), (AbortTransactionRecord, [])])
def test_a_transaction_counts_when_it_ended(end: type[MetadataRecord], names: list[str]) -> None:
    begin = BeginTransactionRecord(name="creation")
    last = EndTransactionRecord() if end is EndTransactionRecord else AbortTransactionRecord(reason="no")
    metadata = replayed(begin, *topic_of(0), last)
    assert [topic.name for topic in metadata.topics.values()] == names
    assert replayed(begin, *topic_of(0)).topics == {}


def test_the_log_goes_on_behind_a_snapshot() -> None:
    metadata = KafkaMetadata()
    metadata.replay_snapshot(encode_snapshot(SnapshotId(10, 1), topic_of(7), 0))
    changed = PartitionChangeRecord(topic_id=TOPIC_ID, partition_id=0, leader=2)
    metadata.replay_log(log_of([changed], base_offset=0), 10)
    metadata.replay_log(log_of([changed], base_offset=10), 10)
    assert metadata.topics[TOPIC_ID].leader_epochs == {0: 8}


def test_a_snapshot_without_its_end_is_refused() -> None:
    whole = encode_snapshot(SnapshotId(10, 1), topic_of(7), 0)
    with pytest.raises(RecordFormatError):
        KafkaMetadata().replay_snapshot(whole[:-80])


def test_access_rules_are_counted() -> None:
    removed = unsigned_varint(1) + unsigned_varint(19) + unsigned_varint(0) + b"whatever"
    values = [(None, value) for value in (ACCESS_CONTROL_ENTRY, ACCESS_CONTROL_ENTRY, removed)]
    metadata = KafkaMetadata()
    metadata.replay_log(build_batch(0, values, leader_epoch=1, timestamp_ms=0), 0)
    assert metadata.access_rule_count == 1


@pytest.mark.parametrize(("number", "name"), [(27, "RegisterController"), (29, "UnregisterController")])
def test_records_about_kafkas_controllers_are_passed_over(number: int, name: str) -> None:
    of_controller = unsigned_varint(1) + unsigned_varint(number) + unsigned_varint(0) + name.encode()
    values = [(None, value) for value in (of_controller, *map(encode_metadata_record, topic_of(7)))]
    metadata = KafkaMetadata()
    metadata.replay_log(build_batch(0, values, leader_epoch=1, timestamp_ms=0), 0)
    assert metadata.topics[TOPIC_ID].leader_epochs == {0: 7}
