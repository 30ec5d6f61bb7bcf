"""The tables of settings are consistent, and each default passes its own check."""

import pytest

from barnabas.broker.config import tables
from barnabas.broker.config.kafka_names import REMOVED_SETTINGS, RENAMED_SETTINGS, UNUSED_SETTINGS
from barnabas.broker.config.setting import Setting, SettingType, render

ALL = [*tables.BROKER.values(), *tables.TOPIC.values(), *tables.GROUP.values()]


@pytest.mark.parametrize("setting", ALL, ids=lambda setting: setting.name)
def test_a_rendered_default_parses_to_itself(setting: Setting) -> None:
    text = render(setting.default)
    if text is not None:
        assert setting.parse(text) == setting.default


@pytest.mark.parametrize("setting", ALL, ids=lambda setting: setting.name)
def test_a_setting_has_a_description(setting: Setting) -> None:
    assert setting.doc.endswith(".")


@pytest.mark.parametrize("setting", ALL, ids=lambda setting: setting.name)
def test_a_check_names_the_values_that_it_allows(setting: Setting) -> None:
    """The reference of settings prints them: decorate a check with `allows`."""
    assert bool(setting.allowed) == (setting.check is not None)


@pytest.mark.parametrize(
    "setting", [*tables.TOPIC.values(), *tables.GROUP.values()], ids=lambda setting: setting.name
)
def test_a_synonym_is_a_broker_setting_of_the_same_type(setting: Setting) -> None:
    assert setting.broker_synonyms or setting.default is not None
    first_name = next(iter(setting.broker_synonyms), (None, 1))[0]
    if first_name is not None:
        # The broker's list of assignors has one name; Kafka has the same pair for streams groups.
        is_list = setting.name == "share.assignor.name"
        assert tables.BROKER[first_name].type is (SettingType.LIST if is_list else setting.type)
    for name, factor in setting.broker_synonyms:
        assert factor == 1 or tables.BROKER[name].type is SettingType.INT


def test_a_name_has_one_meaning() -> None:
    names = [*tables.BROKER, *UNUSED_SETTINGS, *RENAMED_SETTINGS, *REMOVED_SETTINGS]
    assert len(names) == len(set(names))
    assert set(RENAMED_SETTINGS.values()) <= set(tables.BROKER)


def test_each_name_has_its_own_environment_variable() -> None:
    names = tables.environment_names("BARNABAS_")
    assert names["BARNABAS_LOG_RETENTION_MS"] == "log.retention.ms"
    assert len(names) == len(set(names.values()))


def test_kafkas_topic_settings_are_all_there() -> None:
    assert len(tables.TOPIC) == 37
