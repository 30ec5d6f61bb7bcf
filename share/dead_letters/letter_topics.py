"""The topic for a group's dead letters: the rules of KIP-1191, in Apache Kafka's order, and its creation.

One rule is our own: a compacted topic is refused, because letters may have no key.
"""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

from barnabas.coordinator.metadata.controller import Controller
from barnabas.coordinator.metadata.image import Topic
from barnabas.coordinator.metadata.topic_decisions import NewTopic
from barnabas.coordinator.metadata.topic_names import invalid_topic_name

ENABLE_SETTING: Final = "errors.deadletterqueue.group.enable"
_TOPIC_SETTINGS: Final = {ENABLE_SETTING: "true", "message.timestamp.type": "CreateTime"}
_RESERVED_PREFIX: Final = "__"


class DeadLetterConfig(NamedTuple):
    """A group's settings for dead letters."""

    topic_name: str
    """errors.deadletterqueue.topic.name; empty without dead letters."""
    copies_records: bool
    """errors.deadletterqueue.copy.record.enable: keys and values are copied."""
    copies_headers: bool
    """share.dead.letter.copy.headers.enable: with the record, its headers are copied."""
    holds_on_failure: bool
    """share.dead.letter.on.failure=hold: a record whose letter cannot be written waits."""


class LetterSettings(Protocol):
    """The present settings that dead letters depend on."""

    def of_group(self, group_id: str) -> DeadLetterConfig: ...

    def creates_topics(self) -> bool:
        """errors.deadletterqueue.auto.create.topics.enable of the broker."""
        ...

    def name_prefix(self) -> str:
        """errors.deadletterqueue.topic.name.prefix of the broker; empty without a restriction."""
        ...

    def is_enabled(self, topic_name: str) -> bool:
        """errors.deadletterqueue.group.enable of the topic."""
        ...

    def is_compacted(self, topic_name: str) -> bool:
        """Whether the topic's cleanup.policy includes compact."""
        ...


class LetterRefused(Exception):  # noqa: N818  named as the condition
    """The reason why a group's dead letters cannot be written, and the remedy, for the log."""


class LetterTopics:
    """Finds and creates the topics of dead letters."""

    def __init__(self, settings: LetterSettings, controller: Controller) -> None:
        self._settings = settings
        self._controller = controller

    def find(self, group_id: str) -> Topic | None:
        """The usable topic of a group; None if there is none yet. Raises LetterRefused."""
        name = self._settings.of_group(group_id).topic_name
        if not name:
            raise LetterRefused(f"Configured DLQ topic name in share group: {group_id} is empty.")
        if name.startswith(_RESERVED_PREFIX):
            raise LetterRefused(
                f"The name of a DLQ topic cannot start with {_RESERVED_PREFIX}, topic: {name}."
            )
        topic = self._controller.image.topics_by_name.get(name)
        if topic is None:
            self._check_creation(group_id, name)
        else:
            self._check_topic(group_id, name)
        prefix = self._settings.name_prefix()
        if not name.startswith(prefix):
            raise LetterRefused(
                "Configured DLQ topic name does not comply with the DLQ topic prefix in share group: "
                f"{group_id}, topic: {name}, prefix: {prefix}."
            )
        return topic

    async def ensure(self, group_id: str) -> Topic:
        """The usable topic of a group, created if there is none. Raises LetterRefused."""
        topic = self.find(group_id)
        if topic is None:
            name = self._settings.of_group(group_id).topic_name
            await self._create(name)
            topic = self.find(group_id)
        if topic is None:
            raise LetterRefused(f"The DLQ topic of share group {group_id} was deleted while it was created.")
        return topic

    def _check_creation(self, group_id: str, name: str) -> None:
        if not self._settings.creates_topics():
            raise LetterRefused(
                "DLQ topic does not exist and auto create is disabled on cluster for share group: "
                f"{group_id}, topic: {name}."
            )
        reason = invalid_topic_name(name)
        if reason is not None:
            raise LetterRefused(f"The DLQ topic of share group {group_id} cannot be created: {reason}")

    def _check_topic(self, group_id: str, name: str) -> None:
        if not self._settings.is_enabled(name):
            raise LetterRefused(
                f"DLQ is not enabled on configured DLQ topic for share group: {group_id}, topic: {name}. "
                f"Set {ENABLE_SETTING}=true for the topic."
            )
        if self._settings.is_compacted(name):
            raise LetterRefused(
                f"The DLQ topic {name} of share group {group_id} is compacted, and dead letters may have no "
                "key. Set cleanup.policy=delete for the topic."
            )

    async def _create(self, name: str) -> None:
        (created,) = await self._controller.create_topics([NewTopic(name, configs=_TOPIC_SETTINGS)])
        error = created.error
        if error is not None and name not in self._controller.image.topics_by_name:
            raise LetterRefused(f"The DLQ topic {name} could not be created: {error.message}")
