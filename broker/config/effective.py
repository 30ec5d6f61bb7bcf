"""The value of every setting at this moment, its source, and its synonyms.

A topic's value is its own, else that of its broker settings, else the default. A broker's value is the one
that IncrementalAlterConfigs set for this broker, else for all brokers, else the value at the start of the
process, else the default (KIP-226). DescribeConfigs and CreateTopics return the entries, with the same
sources and synonyms as Apache Kafka.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import NamedTuple

from barnabas.broker.config import tables
from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.config.metadata_settings import METADATA_TOPIC_SETTINGS
from barnabas.broker.config.security_settings import listener_setting_name
from barnabas.broker.config.setting import Setting, SettingType, Value, render
from barnabas.coordinator.metadata.image import MetadataImage, ResourceType
from barnabas.coordinator.metadata.topic_names import is_internal
from barnabas.storage.log_config import LogConfig

ALL_BROKERS = ""
"""The name of the resource that holds the dynamic defaults of all brokers."""


class ConfigSource(IntEnum):
    """The source of a value, by its id in DescribeConfigs."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    GROUP = 8


class ConfigSynonym(NamedTuple):
    """A possible source of the value, with the setting's name there."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True, eq=False)
class ConfigEntry:
    """One setting of one resource, or of all resources without their own value for it. Entries are equal only
    if they are the same object. `synonyms` begins with the source in effect.
    """

    setting: Setting
    value: str | None
    source: ConfigSource
    synonyms: Sequence[ConfigSynonym]


@dataclass(slots=True)
class _Computed:
    """Results computed from one revision of the settings."""

    revision: int
    log_configs: dict[str, LogConfig] = field(default_factory=dict[str, LogConfig])
    """By topic; topics without settings of their own share the one under the empty name, so there is at most
    one more than topics with settings."""
    entries: dict[str, Sequence[ConfigEntry]] = field(default_factory=dict[str, Sequence[ConfigEntry]])
    """By kind of resource: the entries of a resource without settings of its own."""


class EffectiveConfig:
    """The configuration of one broker, with the changes that `image` contains.

    The entries of resources without settings of their own are computed once for each revision of the
    settings. A resource with settings uses these entries for its other settings.
    """

    def __init__(self, config: BrokerConfig, image: MetadataImage) -> None:
        self._config = config
        self._image = image
        self._computed = _Computed(image.config_revision)

    # --- values -----------------------------------------------------------------------------------

    def broker_value(self, name: str) -> Value:
        """The value of a broker setting."""
        for raw_by_name in (self._dynamic(str(self._config.node_id)), self._dynamic(ALL_BROKERS)):
            if name in raw_by_name:
                return tables.broker_setting(name).parse(raw_by_name[name])
        return self._config[name]

    def listener_value(self, listener: str, name: str) -> Value:
        """The value of a setting for one listener: its own, else that of all listeners."""
        own = listener_setting_name(listener, name)
        raw = self._dynamic(str(self._config.node_id)).get(own)
        if raw is not None:
            return tables.broker_setting(own).parse(raw)
        return self._config.listener_value(listener, name)

    def topic_config(self, topic_name: str) -> LogConfig:
        """The settings of one topic's logs; the same object until any setting changes."""
        own = self._image.configs(ResourceType.TOPIC, topic_name)
        checks_indexes = is_internal(topic_name)
        key = topic_name if own or checks_indexes else ""
        log_configs = self._current().log_configs
        config = log_configs.get(key)
        if config is None:
            values = {
                entry.setting.name: entry.value
                for entry in self.topic_entries(own)
                if entry.value is not None and self._holds(entry)
            }
            config = replace(LogConfig.from_topic_configs(values), checks_indexes=checks_indexes)
            log_configs[key] = config
        return config

    def _holds(self, entry: ConfigEntry) -> bool:
        """Whether a topic's setting takes effect; with log.flush=never the broker's interval does not."""
        is_of_topic = entry.source is ConfigSource.TOPIC
        return entry.setting.name != "flush.ms" or is_of_topic or self._config.text("log.flush") != "never"

    def default_value(self, setting: Setting) -> Value:
        """The value of a topic's or group's setting if the resource itself does not set it."""
        for name, factor in setting.broker_synonyms:
            value = self.broker_value(name)
            if value is not None:
                return _scaled(value, factor)
        return setting.default

    # --- entries ----------------------------------------------------------------------------------

    def topic_entries(self, own: Mapping[str, str]) -> Sequence[ConfigEntry]:
        """All settings of a topic that itself sets those in `own`, by name."""
        shared = self._shared("topic", lambda: map(self._shared_entry, tables.TOPIC.values()))
        return _with_own(shared, own, ConfigSource.TOPIC)

    def new_topic_entries(self, own: Mapping[str, str]) -> Sequence[ConfigEntry]:
        """`topic_entries` with the sources that CreateTopics returns: those of any synonym of the setting."""
        shared = self._shared("new topic", self._new_topic_entries)
        return _with_own(shared, own, ConfigSource.TOPIC)

    def metadata_topic_entries(self) -> Sequence[ConfigEntry]:
        """The settings of the metadata log, by name: read-only, and set by the broker's."""
        return self._shared("metadata topic", lambda: map(self._shared_entry, METADATA_TOPIC_SETTINGS))

    def group_entries(self, group_id: str) -> Sequence[ConfigEntry]:
        """All settings of a group, by name. The group need not exist."""
        shared = self._shared("group", lambda: map(self._shared_group_entry, tables.GROUP.values()))
        return _with_own(shared, self._image.configs(ResourceType.GROUP, group_id), ConfigSource.GROUP)

    def broker_entries(self) -> Sequence[ConfigEntry]:
        """All settings of this broker."""
        return self._shared("broker", self._broker_entries)

    def all_brokers_entries(self) -> Sequence[ConfigEntry]:
        """The dynamic defaults of all brokers."""
        return self._shared("all brokers", self._all_brokers_entries)

    def _current(self) -> _Computed:
        if self._computed.revision != self._image.config_revision:
            self._computed = _Computed(self._image.config_revision)
        return self._computed

    def _shared(self, kind: str, compute: Callable[[], Iterable[ConfigEntry]]) -> Sequence[ConfigEntry]:
        """The same objects until any setting changes."""
        shared = self._current().entries
        if kind not in shared:
            shared[kind] = tuple(compute())
        return shared[kind]

    def _shared_entry(self, setting: Setting) -> ConfigEntry:
        """A setting of resources without their own value for it."""
        synonyms = self._synonyms_of(setting.broker_synonyms[0][0]) if setting.broker_synonyms else []
        source = synonyms[0].source if synonyms else ConfigSource.DEFAULT
        return ConfigEntry(setting, render(self.default_value(setting)), source, synonyms)

    def _shared_group_entry(self, setting: Setting) -> ConfigEntry:
        entry = self._shared_entry(setting)
        if setting.broker_synonyms:
            return entry
        default = ConfigSynonym(setting.name, render(setting.default), ConfigSource.DEFAULT)
        return replace(entry, synonyms=(default,))

    def _new_topic_entries(self) -> Iterable[ConfigEntry]:
        return [
            replace(entry, source=self._nearest_source(entry.setting)) for entry in self.topic_entries({})
        ]

    def _nearest_source(self, setting: Setting) -> ConfigSource:
        synonyms = self._broker_synonyms([name for name, _ in setting.broker_synonyms])
        return synonyms[0].source if synonyms else ConfigSource.DEFAULT

    def _broker_entries(self) -> Iterable[ConfigEntry]:
        of_listeners = {*self._config.given, *self._dynamic(str(self._config.node_id))} - tables.BROKER.keys()
        settings = (*tables.BROKER.values(), *map(tables.broker_setting, sorted(of_listeners)))
        return map(self._broker_entry, settings)

    def _all_brokers_entries(self) -> Iterable[ConfigEntry]:
        source = ConfigSource.DYNAMIC_DEFAULT_BROKER
        return [
            ConfigEntry(tables.broker_setting(name), raw, source, (ConfigSynonym(name, raw, source),))
            for name, raw in self._dynamic(ALL_BROKERS).items()
        ]

    def _broker_entry(self, setting: Setting) -> ConfigEntry:
        synonyms = self._synonyms_of(setting.name)
        source = synonyms[0].source if synonyms else ConfigSource.DEFAULT
        return ConfigEntry(setting, render(self.broker_value(setting.name)), source, synonyms)

    def _synonyms_of(self, name: str) -> list[ConfigSynonym]:
        """The possible sources of a broker setting's value.

        As in Kafka, the same setting in other units follows the first source of this one; without a source of
        this one the result is empty.
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
        defaults = ((name, tables.broker_setting(name).default) for name in names)
        found.extend(
            ConfigSynonym(name, render(default), ConfigSource.DEFAULT)
            for name, default in defaults
            if default is not None
        )
        return found

    def _dynamic(self, broker_name: str) -> Mapping[str, str]:
        return self._image.configs(ResourceType.BROKER, broker_name)


def _with_own(
    shared: Sequence[ConfigEntry], own: Mapping[str, str], source: ConfigSource
) -> Sequence[ConfigEntry]:
    """The entries of a resource that itself sets those in `own`; the other entries are `shared`."""
    if not own:
        return shared
    return [
        _own_entry(entry, own[entry.setting.name], source) if entry.setting.name in own else entry
        for entry in shared
    ]


def _own_entry(entry: ConfigEntry, raw: str, source: ConfigSource) -> ConfigEntry:
    value = render(entry.setting.parse(raw))
    synonym = ConfigSynonym(entry.setting.name, value, source)
    return ConfigEntry(entry.setting, value, source, [synonym, *entry.synonyms])


def _scaled(value: Value, factor: int) -> Value:
    """`value` in the smaller unit; below 0 it means "no limit" in every unit."""
    if factor == 1:
        return value
    assert isinstance(value, int), "only whole numbers have units"
    return value * factor if value >= 0 else -1


def is_list(setting: Setting) -> bool:
    return setting.type is SettingType.LIST
