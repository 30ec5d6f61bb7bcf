"""The present settings that dead letters depend on; implements `LetterSettings`."""

from barnabas.broker.config import tables
from barnabas.broker.config.dead_letter_settings import CREATES_TOPICS, ENABLE, NAME_PREFIX
from barnabas.broker.config.effective import EffectiveConfig
from barnabas.broker.config.group_config import GroupConfigs
from barnabas.coordinator.metadata.image import MetadataImage, ResourceType
from barnabas.share.dead_letters.letter_topics import DeadLetterConfig


class DeadLetterSettings:
    """The settings of groups, of the broker, and of topics for dead letters."""

    def __init__(self, groups: GroupConfigs, effective: EffectiveConfig, image: MetadataImage) -> None:
        self._groups = groups
        self._effective = effective
        self._image = image

    def of_group(self, group_id: str) -> DeadLetterConfig:
        return self._groups.of(group_id).dead_letters

    def creates_topics(self) -> bool:
        return self._effective.broker_value(CREATES_TOPICS) is True

    def name_prefix(self) -> str:
        return str(self._effective.broker_value(NAME_PREFIX))

    def is_enabled(self, topic_name: str) -> bool:
        own = self._image.configs(ResourceType.TOPIC, topic_name)
        return ENABLE in own and tables.TOPIC[ENABLE].parse(own[ENABLE]) is True

    def is_compacted(self, topic_name: str) -> bool:
        return self._effective.topic_config(topic_name).compact_enabled
