"""A configuration with settings of topics, brokers and groups from a test."""

from typing import NamedTuple

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.config.effective import EffectiveConfig
from barnabas.broker.config.group_config import GroupConfigs
from barnabas.broker.config.rules import SettingRules
from barnabas.coordinator.metadata.image import MetadataChanges, MetadataImage, ResourceType
from barnabas.protocol.metadata_records import ConfigRecord


class Configured(NamedTuple):
    """The parts of the configuration of broker 1, with one image."""

    config: BrokerConfig
    image: MetadataImage
    effective: EffectiveConfig
    groups: GroupConfigs
    rules: SettingRules

    def give(self, resource_type: ResourceType, name: str, **settings: str | None) -> None:
        """Replay settings; `__` in a keyword stands for a dot, None unsets."""
        for key, value in settings.items():
            record = ConfigRecord(
                resource_type=resource_type, resource_name=name, name=key.replace("__", "."), value=value
            )
            self.image.replay(record, MetadataChanges())


def configured(**given: str) -> Configured:
    """A broker started with `given`, whose keywords have `__` for each dot."""
    config = BrokerConfig({name.replace("__", "."): text for name, text in given.items()})
    image = MetadataImage()
    effective = EffectiveConfig(config, image)
    return Configured(
        config, image, effective, GroupConfigs(config, effective, image), SettingRules(config, effective)
    )
