"""What every setting is at this moment, where that comes from, and what it would be otherwise.

A topic's value is its own, else that of its broker settings, else the default; a broker's is what
IncrementalAlterConfigs gave this broker, else all brokers, else what the process was started with, else the
default (KIP-226). The entries are what DescribeConfigs and CreateTopics answer with, sources and synonyms as
Apache Kafka gives them.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from barnabas.broker.config import tables
from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.config.metadata_settings import METADATA_TOPIC_SETTINGS
from barnabas.broker.config.setting import Setting, SettingType, Value, render
from barnabas.coordinator.metadata.image import MetadataImage, ResourceType
from barnabas.storage.log_config import LogConfig

_CODEC, _AS_PRODUCED = "compression.type", "producer"

ALL_BROKERS = ""
"""The name of the resource that holds the dynamic defaults of all brokers."""


class ConfigSource(IntEnum):
    """Where a value comes from, by its id in DescribeConfigs."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    GROUP = 8


class ConfigSynonym(NamedTuple):
    """A place where the value could come from, under the name that it has there."""

    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    """One setting of one resource. `synonyms` has the place that counts first."""

    setting: Setting
    value: str | None
    source: ConfigSource
    synonyms: Sequence[ConfigSynonym]


class EffectiveConfig:
    """The configuration of one broker over what `image` holds; computed at each call, except for
    `topic_config` and `has_topic_codecs`.
    """

    def __init__(self, config: BrokerConfig, image: MetadataImage) -> None:
        self._config = config
        self._image = image
        self._log_configs: dict[str, LogConfig] = {}
        self._log_configs_revision = image.config_revision
        self._has_topic_codecs = False
        self._has_topic_codecs_revision = -1

    # --- values -----------------------------------------------------------------------------------

    def broker_value(self, name: str) -> Value:
        """The value of a broker setting."""
        for raw_by_name in (self._dynamic(str(self._config.node_id)), self._dynamic(ALL_BROKERS)):
            if name in raw_by_name:
                return tables.BROKER[name].parse(raw_by_name[name])
        return self._config[name]

    def topic_config(self, topic_name: str) -> LogConfig:
        """The settings of one topic's logs, ready to use; the same object until some setting is changed."""
        if self._log_configs_revision != self._image.config_revision:
            self._log_configs.clear()
            self._log_configs_revision = self._image.config_revision
        # Topics without settings of their own share one object, so this holds one more than have some.
        key = topic_name if self._image.configs(ResourceType.TOPIC, topic_name) else ""
        config = self._log_configs.get(key)
        if config is None:
            entries = self.topic_entries(self._image.configs(ResourceType.TOPIC, topic_name))
            values = {
                entry.setting.name: entry.value
                for entry in entries
                if entry.value is not None and self._holds(entry)
            }
            config = self._log_configs[key] = LogConfig.from_topic_configs(values)
        return config

    @property
    def has_topic_codecs(self) -> bool:
        """Whether any topic may have a codec of its own (compression.type); looked for anew once some setting
        is changed.
        """
        image = self._image
        if self._has_topic_codecs_revision != image.config_revision:
            self._has_topic_codecs_revision = image.config_revision
            self._has_topic_codecs = self.broker_value(_CODEC) != _AS_PRODUCED or any(
                image.configs(ResourceType.TOPIC, name).get(_CODEC, _AS_PRODUCED) != _AS_PRODUCED
                for name in image.configured_names(ResourceType.TOPIC)
            )
        return self._has_topic_codecs

    def _holds(self, entry: ConfigEntry) -> bool:
        """Whether a topic's setting takes effect: with log.flush=never the broker's interval doesn't."""
        is_of_topic = entry.source is ConfigSource.TOPIC
        return entry.setting.name != "flush.ms" or is_of_topic or self._config.text("log.flush") != "never"

    def default_value(self, setting: Setting) -> Value:
        """What a topic's or group's setting is if the resource itself says nothing."""
        for name, factor in setting.broker_synonyms:
            value = self.broker_value(name)
            if value is not None:
                return _scaled(value, factor)
        return setting.default

    # --- entries ----------------------------------------------------------------------------------

    def topic_entries(self, own: Mapping[str, str]) -> list[ConfigEntry]:
        """All settings of a topic that has those in `own` for itself, by name."""
        return [self._resource_entry(setting, own, ConfigSource.TOPIC) for setting in tables.TOPIC.values()]

    def metadata_topic_entries(self) -> list[ConfigEntry]:
        """The settings of the metadata log, by name: they are the broker's, and read-only."""
        return [self._resource_entry(setting, {}, ConfigSource.TOPIC) for setting in METADATA_TOPIC_SETTINGS]

    def group_entries(self, group_id: str) -> list[ConfigEntry]:
        """All settings of a group, by name. The group need not exist."""
        own = self._image.configs(ResourceType.GROUP, group_id)
        return [self._group_entry(setting, own) for setting in tables.GROUP.values()]

    def broker_entries(self) -> list[ConfigEntry]:
        """All settings of this broker."""
        return [self._broker_entry(setting) for setting in tables.BROKER.values()]

    def all_brokers_entries(self) -> list[ConfigEntry]:
        """The dynamic defaults of all brokers."""
        return [
            ConfigEntry(
                tables.BROKER[name],
                raw,
                ConfigSource.DYNAMIC_DEFAULT_BROKER,
                (ConfigSynonym(name, raw, ConfigSource.DYNAMIC_DEFAULT_BROKER),),
            )
            for name, raw in self._dynamic(ALL_BROKERS).items()
        ]

    def new_topic_entries(self, own: Mapping[str, str]) -> list[ConfigEntry]:
        """`topic_entries`, the sources as CreateTopics names them: any of a setting's synonyms counts
        there.
        """
        return [
            entry._replace(source=self._nearest_source(entry.setting, own))
            for entry in self.topic_entries(own)
        ]

    def _nearest_source(self, setting: Setting, own: Mapping[str, str]) -> ConfigSource:
        if setting.name in own:
            return ConfigSource.TOPIC
        synonyms = self._broker_synonyms([name for name, _ in setting.broker_synonyms])
        return synonyms[0].source if synonyms else ConfigSource.DEFAULT

    def _resource_entry(
        self, setting: Setting, own: Mapping[str, str], own_source: ConfigSource
    ) -> ConfigEntry:
        synonyms: list[ConfigSynonym] = []
        value = self.default_value(setting)
        if setting.name in own:
            value = setting.parse(own[setting.name])
            synonyms.append(ConfigSynonym(setting.name, render(value), own_source))
        if setting.broker_synonyms:
            synonyms.extend(self._synonyms_of(setting.broker_synonyms[0][0]))
        source = synonyms[0].source if synonyms else ConfigSource.DEFAULT
        return ConfigEntry(setting, render(value), source, synonyms)

    def _group_entry(self, setting: Setting, own: Mapping[str, str]) -> ConfigEntry:
        entry = self._resource_entry(setting, own, ConfigSource.GROUP)
        if setting.broker_synonyms:
            return entry
        default = ConfigSynonym(setting.name, render(setting.default), ConfigSource.DEFAULT)
        return entry._replace(synonyms=(*entry.synonyms, default))

    def _broker_entry(self, setting: Setting) -> ConfigEntry:
        synonyms = self._synonyms_of(setting.name)
        source = synonyms[0].source if synonyms else ConfigSource.DEFAULT
        return ConfigEntry(setting, render(self.broker_value(setting.name)), source, synonyms)

    def _synonyms_of(self, name: str) -> list[ConfigSynonym]:
        """Where a broker setting's value could come from.

        As in Kafka, settings that say the same in another unit come after the first place where this one is
        set; if it is set nowhere there are none at all.
        """
        synonyms = self._broker_synonyms(tables.BROKER_SYNONYM_CHAINS.get(name, (name,)))
        first = next((index for index, synonym in enumerate(synonyms) if synonym.name == name), len(synonyms))
        return synonyms[first:]

    def _broker_synonyms(self, names: Sequence[str]) -> list[ConfigSynonym]:
        places: Iterable[tuple[Mapping[str, str], ConfigSource]] = (
            (self._dynamic(str(self._config.node_id)), ConfigSource.DYNAMIC_BROKER),
            (self._dynamic(ALL_BROKERS), ConfigSource.DYNAMIC_DEFAULT_BROKER),
            (self._config.given, ConfigSource.STATIC_BROKER),
        )
        found = [
            ConfigSynonym(name, raw_by_name[name], source)
            for raw_by_name, source in places
            for name in names
            if name in raw_by_name
        ]
        defaults = ((name, tables.BROKER[name].default) for name in names)
        found.extend(
            ConfigSynonym(name, render(default), ConfigSource.DEFAULT)
            for name, default in defaults
            if default is not None
        )
        return found

    def _dynamic(self, broker_name: str) -> Mapping[str, str]:
        return self._image.configs(ResourceType.BROKER, broker_name)


def _scaled(value: Value, factor: int) -> Value:
    """`value` in the smaller unit; below 0 it means "no limit" in every unit."""
    if factor == 1:
        return value
    assert isinstance(value, int), "only whole numbers have units"
    return value * factor if value >= 0 else -1


def is_list(setting: Setting) -> bool:
    return setting.type is SettingType.LIST
