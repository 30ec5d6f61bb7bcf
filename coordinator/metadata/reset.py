"""Removes all topics, internal ones as well, and the settings of all groups. For brokers of tests. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.coordinator.metadata.image import MetadataImage, ResourceType
from barnabas.protocol.metadata_records import ConfigRecord, MetadataRecord, RemoveTopicRecord


def decide_reset(image: MetadataImage) -> list[MetadataRecord]:
    """The records of the reset; users, quotas, features and the settings of brokers stay."""
    removals = (RemoveTopicRecord(topic_id=topic_id) for topic_id in image.topics_by_id)
    return [*removals, *_unset_group_settings(image)]


def _unset_group_settings(image: MetadataImage) -> Iterator[ConfigRecord]:
    for group_id in image.configured_names(ResourceType.GROUP):
        for name in image.configs(ResourceType.GROUP, group_id):
            yield ConfigRecord(
                resource_type=ResourceType.GROUP, resource_name=group_id, name=name, value=None
            )
