"""The metadata image as the catalog of topics for the group coordinators."""

from uuid import UUID

from barnabas.coordinator.metadata.topic_catalog import ImageTopics
from barnabas.coordinator.replay.interfaces import TopicShape
from tests.conformance.harness import open_lab


async def test_topics_are_found_by_name_and_by_id_with_their_partitions() -> None:
    async with open_lab() as lab:
        topic_id = await lab.create_topic("t", 3)
        catalog = ImageTopics(lab.broker.metadata.image, lambda: lab.broker.metadata.last_offset)
        shape = TopicShape("t", topic_id, 3)
        assert catalog.topic_by_name("t") == shape
        assert catalog.topic_by_id(topic_id) == shape
        assert catalog.topic_by_name("u") is None
        assert catalog.topic_by_id(UUID(int=1)) is None


async def test_the_image_is_followed() -> None:
    async with open_lab() as lab:
        topic_id = await lab.create_topic("t")
        catalog = ImageTopics(lab.broker.metadata.image, lambda: lab.broker.metadata.last_offset)
        await lab.delete_topic("t")
        assert catalog.topic_by_id(topic_id) is None
