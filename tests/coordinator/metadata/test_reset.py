"""A reset removes topics, internal ones as well, and the settings of groups, and nothing else."""

from __future__ import annotations

from uuid import UUID

from barnabas.coordinator.metadata.image import MetadataChanges, MetadataImage, ResourceType
from barnabas.coordinator.metadata.reset import decide_reset
from barnabas.protocol.metadata_records import ConfigRecord, MetadataRecord, TopicRecord

BROKER_SETTING = ConfigRecord(resource_type=4, resource_name="", name="log.retention.ms", value="1")


def filled(*records: MetadataRecord) -> MetadataImage:
    image = MetadataImage()
    for record in records:
        image.replay(record, MetadataChanges())
    return image


def test_only_settings_of_brokers_are_left() -> None:
    image = filled(
        TopicRecord(name="orders", topic_id=UUID(int=1)),
        TopicRecord(name="__consumer_offsets", topic_id=UUID(int=2)),
        ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value="1"),
        ConfigRecord(resource_type=32, resource_name="g", name="share.order", value="key"),
        ConfigRecord(resource_type=32, resource_name="g", name="share.auto.offset.reset", value="earliest"),
        BROKER_SETTING,
    )
    changes = MetadataChanges()
    for record in decide_reset(image):
        image.replay(record, changes)
    assert image.topics_by_name == {}
    assert {topic.name for topic in changes.deleted} == {"orders", "__consumer_offsets"}
    assert image.configured_names(ResourceType.GROUP) == []
    assert image.configured_names(ResourceType.TOPIC) == []
    assert image.configs(ResourceType.BROKER, "") == {"log.retention.ms": "1"}


def test_a_reset_of_nothing_needs_no_record() -> None:
    assert decide_reset(filled(BROKER_SETTING)) == []
