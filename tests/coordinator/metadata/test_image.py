"""The metadata image: the change of each record, and that its own records make it again."""

from uuid import UUID

import pytest

from barnabas.coordinator.metadata.client_quotas import quota_entity, quota_record
from barnabas.coordinator.metadata.image import (
    ConfigResource,
    MetadataChanges,
    MetadataImage,
    ResourceType,
    Topic,
)
from barnabas.protocol.metadata_records import (
    AbortTransactionRecord,
    BrokerEndpoint,
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

ID_1, ID_2 = UUID(int=1, version=4), UUID(int=2, version=4)


def partition(topic_id: UUID, index: int, leader_epoch: int = 0) -> PartitionRecord:
    return PartitionRecord(
        partition_id=index,
        topic_id=topic_id,
        replicas=(1,),
        isr=(1,),
        leader=1,
        leader_epoch=leader_epoch,
        partition_epoch=0,
        directories=(UUID(int=7),),
    )


def registration(broker_epoch: int, broker_id: int = 1) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=broker_id,
        incarnation_id=UUID(int=9),
        broker_epoch=broker_epoch,
        end_points=(BrokerEndpoint(name="PLAINTEXT", host="h", port=1, security_protocol=0),),
        features=(),
        rack=None,
        fenced=False,
    )


def config(resource_type: int, resource_name: str, name: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(resource_type=resource_type, resource_name=resource_name, name=name, value=value)


TOPIC = (TopicRecord(name="t.a", topic_id=ID_1), partition(ID_1, 0), partition(ID_1, 1))


def replayed(*records: MetadataRecord) -> tuple[MetadataImage, MetadataChanges]:
    image, changes = MetadataImage(), MetadataChanges()
    for record in records:
        image.replay(record, changes)
    return image, changes


def test_a_new_topic_is_found_by_name_and_id_and_reported_once() -> None:
    image, changes = replayed(*TOPIC)
    topic = image.topics_by_name["t.a"]
    assert image.topics_by_id[ID_1] is topic
    assert [one.index for one in topic.partitions] == [0, 1]
    assert changes.created == [topic]
    assert changes.grown == []


def test_partitions_of_an_existing_topic_are_reported_as_growth() -> None:
    image, _ = replayed(*TOPIC)
    changes = MetadataChanges()
    for index in (2, 3):
        image.replay(partition(ID_1, index), changes)
    assert changes.grown == [image.topics_by_name["t.a"]]


def test_a_removed_topic_takes_its_settings_and_its_name_with_it() -> None:
    image, changes = replayed(
        *TOPIC, config(ResourceType.TOPIC, "t.a", "retention.ms", "1"), RemoveTopicRecord(topic_id=ID_1)
    )
    assert image.topics_by_name == {}
    assert image.topics_by_id == {}
    assert image.configs(ResourceType.TOPIC, "t.a") == {}
    assert image.colliding_name("t_a") is None
    assert [topic.name for topic in changes.deleted] == ["t.a"]


def test_a_snapshot_tells_of_a_deleted_topic_until_its_logs_are_gone() -> None:
    again = (TopicRecord(name="t.a", topic_id=ID_2), partition(ID_2, 0))
    image, _ = replayed(*TOPIC, RemoveTopicRecord(topic_id=ID_1), *again)
    assert image.deleted_topics == {ID_1: "t.a"}
    for _ in range(2):
        image, _ = replayed(*image.to_records())
        assert image.deleted_topics == {ID_1: "t.a"}
        assert list(image.topics_by_id) == [ID_2]
    image.logs_removed(ID_1)
    assert list(image.to_records()) == list(again)


def test_a_topic_made_again_is_another_topic() -> None:
    image, _ = replayed(
        *TOPIC, RemoveTopicRecord(topic_id=ID_1), TopicRecord(name="t.a", topic_id=ID_2), partition(ID_2, 0)
    )
    assert image.topics_by_name["t.a"].topic_id == ID_2
    assert ID_1 not in image.topics_by_id


def test_settings_are_set_replaced_and_unset() -> None:
    image, changes = replayed(
        config(ResourceType.GROUP, "g", "a", "1"),
        config(ResourceType.GROUP, "g", "a", "2"),
        config(ResourceType.GROUP, "g", "b", "3"),
    )
    assert image.configs(ResourceType.GROUP, "g") == {"a": "2", "b": "3"}
    assert image.configured_names(ResourceType.GROUP) == ["g"]
    assert changes.configs == [ConfigResource(ResourceType.GROUP, "g")]
    revision = image.config_revision
    for name in ("a", "b"):
        image.replay(config(ResourceType.GROUP, "g", name, None), changes)
    assert image.configs(ResourceType.GROUP, "g") == {}
    assert image.configured_names(ResourceType.GROUP) == []
    assert image.config_revision > revision


def test_a_registration_makes_its_epoch_the_leader_epoch_of_the_nodes_partitions() -> None:
    image, _ = replayed(registration(0), *TOPIC, registration(4), registration(9, broker_id=2))
    assert image.broker_epoch(1) == 4
    assert [one.leader_epoch for one in image.topics_by_id[ID_1].partitions] == [4, 4]
    assert image.broker_epoch(3) == -1


def test_a_partition_change_counts_epochs_up_as_kafka_does() -> None:
    image, changes = replayed(*TOPIC)
    image.replay(PartitionChangeRecord(partition_id=0, topic_id=ID_1, isr=(1, 2)), changes)
    one = image.topics_by_id[ID_1].partitions[0]
    assert (one.isr, one.leader, one.leader_epoch, one.partition_epoch) == ((1, 2), 1, 0, 1)
    image.replay(PartitionChangeRecord(partition_id=0, topic_id=ID_1, leader=2), changes)
    assert (one.isr, one.leader, one.leader_epoch, one.partition_epoch) == ((1, 2), 2, 1, 2)


@pytest.mark.parametrize(
    ("name", "index", "found"), [("t.a", 1, True), ("t.a", 2, False), ("t.a", -1, False), ("x", 0, False)]
)
def test_a_partition_is_found_by_name_and_index(name: str, index: int, found: bool) -> None:
    image, _ = replayed(*TOPIC)
    assert (image.partition(name, index) is not None) is found


def test_a_colliding_name_is_found_in_any_form() -> None:
    image, _ = replayed(*TOPIC)
    assert image.colliding_name("t_a") == "t.a"
    assert image.colliding_name("t-a") is None


def test_features_at_level_zero_are_gone() -> None:
    image, _ = replayed(
        FeatureLevelRecord(name="share.version", feature_level=1),
        FeatureLevelRecord(name="x", feature_level=2),
        FeatureLevelRecord(name="x", feature_level=0),
        NoOpRecord(),
    )
    assert image.features == {"share.version": 1}


def quota(key: str, value: float | None) -> ClientQuotaRecord:
    return quota_record(quota_entity({"user": None, "client-id": "c"}), key, value)


def test_quotas_are_set_replaced_and_removed() -> None:
    image, changes = MetadataImage(), MetadataChanges()
    entity = (("client-id", "c"), ("user", None))
    for record in (quota("a", 1), quota("a", 2), quota("b", 3), quota("b", None), quota("c", None)):
        image.replay(record, changes)
    assert image.client_quotas == {entity: {"a": 2}}
    assert changes.superseded_count == 2
    assert set(changes.client_quotas) == {entity}
    image.replay(quota("a", None), changes)
    assert image.client_quotas == {}


def credential(name: str, iterations: int = 4096) -> UserScramCredentialRecord:
    return UserScramCredentialRecord(
        name=name, mechanism=1, salt=b"s", stored_key=b"k", server_key=b"v", iterations=iterations
    )


def test_credentials_are_set_replaced_and_removed() -> None:
    image, changes = MetadataImage(), MetadataChanges()
    removed = RemoveUserScramCredentialRecord(name="b", mechanism=1)
    for record in (credential("a"), credential("a", 8192), credential("b"), removed):
        image.replay(record, changes)
    assert image.scram_credentials == {("a", 1): credential("a", 8192)}
    assert changes.superseded_count == 2


def test_features_that_were_set_are_reported() -> None:
    image, changes = MetadataImage(), MetadataChanges()
    image.replay(FeatureLevelRecord(name="share.version", feature_level=1), changes)
    assert (changes.features, image.feature_level("share.version")) == (["share.version"], 1)
    assert image.feature_level("group.version") == 0


def test_a_record_that_would_be_lost_is_refused() -> None:
    with pytest.raises(ValueError, match="AbortTransactionRecord"):
        replayed(AbortTransactionRecord())


def test_the_images_own_records_make_it_again() -> None:
    image, _ = replayed(
        FeatureLevelRecord(name="share.version", feature_level=1),
        FeatureLevelRecord(name="metadata.version", feature_level=30),
        registration(3),
        *TOPIC,
        config(ResourceType.TOPIC, "t.a", "retention.ms", "1"),
        config(ResourceType.BROKER, "", "message.max.bytes", "9"),
        credential("alice"),
        quota("producer_byte_rate", 1024),
        ProducerIdsRecord(broker_id=1, next_producer_id=2000),
    )
    records = list(image.to_records())
    again, _ = replayed(*records)
    assert list(again.to_records()) == records
    assert again.topics_by_id == image.topics_by_id
    assert again.next_producer_id == 2000
    assert again.client_quotas == image.client_quotas
    assert again.scram_credentials == image.scram_credentials
    assert records[0] == FeatureLevelRecord(name="metadata.version", feature_level=30)


@pytest.mark.parametrize(
    ("before", "record", "count"),
    [
        ((), TOPIC[0], 0),
        (TOPIC, partition(ID_1, 2), 0),
        (TOPIC, PartitionChangeRecord(partition_id=0, topic_id=ID_1, isr=(1,)), 1),
        (TOPIC, RemoveTopicRecord(topic_id=ID_1), 3),
        (
            (*TOPIC, config(2, "t.a", "a", "1"), config(2, "t.a", "b", "1")),
            RemoveTopicRecord(topic_id=ID_1),
            5,
        ),
        ((), config(2, "t.a", "a", "1"), 0),
        ((config(2, "t.a", "a", "1"),), config(2, "t.a", "b", "2"), 0),
        ((config(2, "t.a", "a", "1"),), config(2, "t.a", "a", "2"), 1),
        ((config(2, "t.a", "a", "1"),), config(2, "t.a", "a", None), 1),
        ((), config(2, "t.a", "a", None), 0),
        ((), registration(0), 0),
        ((registration(0),), registration(1), 1),
        ((registration(0),), registration(0, broker_id=2), 0),
        ((), ProducerIdsRecord(broker_id=1, next_producer_id=1000), 0),
        (
            (ProducerIdsRecord(broker_id=1, next_producer_id=1000),),
            ProducerIdsRecord(broker_id=1, next_producer_id=2000),
            1,
        ),
        ((), FeatureLevelRecord(name="f", feature_level=1), 0),
        (
            (FeatureLevelRecord(name="f", feature_level=1),),
            FeatureLevelRecord(name="f", feature_level=0),
            1,
        ),
        ((), NoOpRecord(), 0),
    ],
)
def test_records_that_are_put_out_of_force_are_counted(
    before: tuple[MetadataRecord, ...], record: MetadataRecord, count: int
) -> None:
    image, _ = replayed(*before)
    changes = MetadataChanges()
    image.replay(record, changes)
    assert changes.superseded_count == count


def test_loading_takes_no_longer_per_topic_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """A comparison of each topic or setting with all earlier ones would take seconds for ten thousand."""

    def compared(*_: object) -> bool:
        raise AssertionError("compared with another one")

    monkeypatch.setattr(Topic, "__eq__", compared)
    monkeypatch.setattr(ConfigResource, "__eq__", compared)
    other = (TopicRecord(name="u", topic_id=ID_2), partition(ID_2, 0), partition(ID_2, 1))
    settings = (config(2, "t.a", "a", "1"), config(2, "u", "a", "1"))
    _, changes = replayed(*TOPIC, *other, *settings)
    assert [topic.name for topic in changes.created] == ["t.a", "u"]
    assert [resource.name for resource in changes.configs] == ["t.a", "u"]
