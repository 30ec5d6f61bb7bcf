"""The topics of the metadata image, as the group coordinator wants to know them."""

from __future__ import annotations

from uuid import UUID

from barnabas.coordinator.metadata.image import MetadataImage, Topic
from barnabas.coordinator.runtime.interfaces import TopicShape


class ImageTopics:
    """The group coordinator's `TopicCatalog`."""

    def __init__(self, image: MetadataImage) -> None:
        self._image = image

    def topic_by_name(self, name: str) -> TopicShape | None:
        return _shape(self._image.topics_by_name.get(name))

    def topic_by_id(self, topic_id: UUID) -> TopicShape | None:
        return _shape(self._image.topics_by_id.get(topic_id))


def _shape(topic: Topic | None) -> TopicShape | None:
    return None if topic is None else TopicShape(topic.name, topic.topic_id, len(topic.partitions))
