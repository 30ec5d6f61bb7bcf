"""The value of a setting at the moment and its source: the same sources and synonyms as Apache Kafka
4.3.1.
"""

from collections.abc import Sequence

import pytest

from barnabas.broker.config.effective import ConfigEntry, ConfigSource
from barnabas.coordinator.metadata.image import ResourceType
from tests.broker.config.config_fakes import Configured, configured

TOPIC, DYNAMIC, ALL_BROKERS = (
    ConfigSource.TOPIC,
    ConfigSource.DYNAMIC_BROKER,
    ConfigSource.DYNAMIC_DEFAULT_BROKER,
)
STATIC, DEFAULT, GROUP = ConfigSource.STATIC_BROKER, ConfigSource.DEFAULT, ConfigSource.GROUP


def entry(entries: Sequence[ConfigEntry], name: str) -> ConfigEntry:
    return next(one for one in entries if one.setting.name == name)


def topic_entry(parts: Configured, name: str) -> ConfigEntry:
    return entry(parts.effective.topic_entries(parts.image.configs(ResourceType.TOPIC, "t")), name)


def test_a_topic_without_settings_has_the_defaults() -> None:
    found = topic_entry(configured(), "max.message.bytes")
    assert (found.value, found.source) == ("1048588", DEFAULT)
    assert found.synonyms == [("message.max.bytes", "1048588", DEFAULT)]


def test_the_nearest_source_counts_and_all_are_named() -> None:
    parts = configured(message__max__bytes="400")
    parts.give(ResourceType.BROKER, "", message__max__bytes="300")
    parts.give(ResourceType.BROKER, "1", message__max__bytes="200")
    parts.give(ResourceType.TOPIC, "t", max__message__bytes="100")
    found = topic_entry(parts, "max.message.bytes")
    assert (found.value, found.source) == ("100", TOPIC)
    assert found.synonyms == [
        ("max.message.bytes", "100", TOPIC),
        ("message.max.bytes", "200", DYNAMIC),
        ("message.max.bytes", "300", ALL_BROKERS),
        ("message.max.bytes", "400", STATIC),
        ("message.max.bytes", "1048588", DEFAULT),
    ]
    for resource_type, name, key, value in (
        (ResourceType.TOPIC, "t", "max__message__bytes", "200"),
        (ResourceType.BROKER, "1", "message__max__bytes", "300"),
        (ResourceType.BROKER, "", "message__max__bytes", "400"),
    ):
        parts.give(resource_type, name, **{key: None})
        assert topic_entry(parts, "max.message.bytes").value == value


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ({}, "604800000"),
        ({"log__retention__hours": "2"}, "7200000"),
        ({"log__retention__hours": "2", "log__retention__minutes": "3"}, "180000"),
        ({"log__retention__hours": "2", "log__retention__minutes": "3", "log__retention__ms": "4"}, "4"),
        ({"log__retention__hours": "-1"}, "-1"),
    ],
)
def test_hours_and_minutes_become_milliseconds(given: dict[str, str], value: str) -> None:
    assert topic_entry(configured(**given), "retention.ms").value == value


def test_a_synonym_in_another_unit_is_not_named_unless_the_first_is_set() -> None:
    assert topic_entry(configured(log__retention__hours="2"), "retention.ms").synonyms == []
    assert topic_entry(configured(log__retention__ms="2"), "retention.ms").synonyms == [
        ("log.retention.ms", "2", STATIC),
        ("log.retention.hours", "168", DEFAULT),
    ]


def test_create_topics_names_the_source_in_any_unit() -> None:
    parts = configured(log__retention__hours="2")
    entries = parts.effective.new_topic_entries({"segment.ms": "5"})
    assert entry(entries, "retention.ms").source is STATIC
    assert entry(entries, "segment.ms").source is TOPIC
    assert entry(entries, "flush.ms").source is DEFAULT
    assert [one.setting.name for one in entries] == sorted(one.setting.name for one in entries)


def test_a_broker_shows_the_settings_of_its_start() -> None:
    found = entry(configured(num__partitions="3").effective.broker_entries(), "num.partitions")
    assert (found.value, found.source) == ("3", STATIC)
    assert found.synonyms == [("num.partitions", "3", STATIC), ("num.partitions", "1", DEFAULT)]


def test_the_default_of_all_brokers_shows_only_changed_settings() -> None:
    parts = configured()
    assert not parts.effective.all_brokers_entries()
    parts.give(ResourceType.BROKER, "", message__max__bytes="300")
    (found,) = parts.effective.all_brokers_entries()
    assert (found.value, found.source) == ("300", ALL_BROKERS)
    assert found.synonyms == (("message.max.bytes", "300", ALL_BROKERS),)


def test_a_groups_default_is_the_brokers_value() -> None:
    parts = configured(group__share__delivery__count__limit="7")
    found = entry(parts.effective.group_entries("g"), "share.delivery.count.limit")
    assert (found.value, found.source) == ("7", STATIC)
    parts.give(ResourceType.GROUP, "g", share__delivery__count__limit="9")
    found = entry(parts.effective.group_entries("g"), "share.delivery.count.limit")
    assert (found.value, found.source) == ("9", GROUP)
    assert found.synonyms == [
        ("share.delivery.count.limit", "9", GROUP),
        ("group.share.delivery.count.limit", "7", STATIC),
        ("group.share.delivery.count.limit", "5", DEFAULT),
    ]


def test_a_group_setting_without_broker_setting_names_its_own_default() -> None:
    parts = configured()
    found = entry(parts.effective.group_entries("g"), "share.auto.offset.reset")
    assert found.source is DEFAULT
    assert tuple(found.synonyms) == (("share.auto.offset.reset", "latest", DEFAULT),)


def test_resources_share_unset_entries_until_any_setting_changes() -> None:
    parts = configured()
    effective = parts.effective
    topic, group, node = (
        effective.topic_entries({}),
        effective.group_entries("g"),
        effective.broker_entries(),
    )
    assert effective.topic_entries({}) is topic
    assert effective.group_entries("h") is group
    assert effective.broker_entries() is node

    own = effective.topic_entries({"retention.ms": "5"})
    changed = [new.setting.name for new, old in zip(own, topic, strict=True) if new is not old]
    assert changed == ["retention.ms"]

    parts.give(ResourceType.BROKER, "", message__max__bytes="300")
    assert entry(effective.topic_entries({}), "max.message.bytes").value == "300"
    assert entry(effective.broker_entries(), "message.max.bytes").value == "300"
    assert effective.group_entries("g") is not group


def test_a_topics_log_uses_the_topics_effective_settings() -> None:
    parts = configured(log__segment__bytes="2097152")
    config = parts.effective.topic_config("t")
    assert (config.segment_bytes, config.retention_ms, config.delete_enabled) == (
        2_097_152,
        604_800_000,
        True,
    )
    assert parts.effective.topic_config("other") is config
    parts.give(ResourceType.TOPIC, "t", cleanup__policy="compact", retention__ms="5")
    config = parts.effective.topic_config("t")
    assert (config.retention_ms, config.delete_enabled, config.compact_enabled) == (5, False, True)
    assert parts.effective.topic_config("t") is config
    assert parts.effective.topic_config("other").retention_ms == 604_800_000


@pytest.mark.parametrize(
    ("given", "of_the_topic", "flush_ms"),
    [
        ({}, None, 1000),
        ({"log__flush__interval__ms": "50"}, None, 50),
        ({"log__flush": "always"}, None, 1000),
        ({"log__flush": "never"}, None, None),
        ({"log__flush": "never", "log__flush__interval__ms": "50"}, None, None),
        ({"log__flush": "never"}, "70", 70),
        ({}, "70", 70),
    ],
)
def test_with_flush_never_only_the_topics_own_interval_holds(
    given: dict[str, str], of_the_topic: str | None, flush_ms: int | None
) -> None:
    parts = configured(**given)
    if of_the_topic is not None:
        parts.give(ResourceType.TOPIC, "t", flush__ms=of_the_topic)
    assert parts.effective.topic_config("t").flush_ms == flush_ms


def test_a_topic_is_flushed_after_the_message_count_of_topic_or_broker() -> None:
    parts = configured(log__flush__interval__messages="10")
    parts.give(ResourceType.TOPIC, "t", flush__messages="1")
    assert parts.effective.topic_config("t").flush_messages == 1
    assert parts.effective.topic_config("u").flush_messages == 10
