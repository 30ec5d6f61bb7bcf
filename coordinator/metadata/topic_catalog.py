"""The topics of the metadata image, in the form that the group coordinators need."""

from __future__ import annotations

from collections.abc import Callable, Collection
from uuid import UUID

from barnabas.coordinator.metadata.image import MetadataImage, Topic
from barnabas.coordinator.replay.interfaces import TopicShape


class ImageTopics:
    """The group coordinators' `TopicCatalog` and `TopicDirectory`."""

    def __init__(self, image: MetadataImage, version: Callable[[], int]) -> None:
        """`version` returns the offset of the image in the metadata log."""
        self._image = image
        self.version = version

    def topic_names(self) -> Collection[str]:
        return self._image.topics_by_name.keys()

    def topic_by_name(self, name: str) -> TopicShape | None:
        return _shape(self._image.topics_by_name.get(name))

    def topic_by_id(self, topic_id: UUID) -> TopicShape | None:
        return _shape(self._image.topics_by_id.get(topic_id))


def _shape(topic: Topic | None) -> TopicShape | None:
    return None if topic is None else TopicShape(topic.name, topic.topic_id, len(topic.partitions))
