"""Loading the configuration: the precedence of sources, and errors for wrong names."""

from pathlib import Path

import pytest

from barnabas.broker.config.errors import ConfigError
from barnabas.broker.config.loading import load_config


def test_flags_win_over_the_environment_which_wins_over_the_file(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text("num.partitions=2\nnode.id=2\nlog.roll.hours=2\n")
    environ = {"BARNABAS_NUM_PARTITIONS": "3", "BARNABAS_NODE_ID": "3"}
    config = load_config(str(path), environ, ["num.partitions=4"])
    assert (config["num.partitions"], config["node.id"], config["log.roll.hours"]) == (4, 3, 2)
    assert config["log.index.interval.bytes"] == 4096
    assert config.warnings == ()


def test_kafkas_unused_settings_give_one_warning() -> None:
    config = load_config(
        None, {}, ["process.roles=broker", "num.io.threads=8", "listener.name.x.ssl.protocol=y"]
    )
    assert config.warnings == (
        (
            "These settings of Apache Kafka have no effect here: "
            "listener.name.x.ssl.protocol, num.io.threads, process.roles."
        ),
    )


@pytest.mark.parametrize(
    ("override", "complaint"),
    [
        ("log.retension.ms=1", "There is no setting log.retension.ms. Is log.retention.ms meant?"),
        ("qqqqqqqqq=1", "There is no setting qqqqqqqqq."),
        ("LOG_RETENTION_MS=1", "There is no setting LOG_RETENTION_MS. Is log.retention.ms meant?"),
        ("broker.id=1", "The setting broker.id was renamed: it is node.id now."),
        (
            "group.share.record.lock.partition.limit=1",
            (
                "The setting group.share.record.lock.partition.limit was renamed: it is "
                "group.share.partition.max.record.locks now."
            ),
        ),
        (
            "max.share.session.cache.slots=1",
            (
                "The setting max.share.session.cache.slots was renamed: it is "
                "group.share.max.share.sessions now."
            ),
        ),
        (
            "group.share.enable=true",
            (
                "There is no setting group.share.enable: the feature share.version decides whether share "
                "groups are served."
            ),
        ),
        (
            "num.partitions=0",
            "Invalid value 0 for configuration num.partitions: Value must be at least 1.",
        ),
    ],
)
def test_an_invalid_setting_is_refused_in_one_sentence(override: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as raised:
        load_config(None, {}, [override])
    assert str(raised.value) == complaint


@pytest.mark.parametrize(
    ("variable", "text", "complaint"),
    [
        ("BARNABAS_SERVICE_HOSTS", "1", "There is no setting service.hosts."),
        ("BARNABAS_BROKER_ID", "1", "The setting broker.id was renamed: it is node.id now."),
        (
            "BARNABAS_NUM_PARTITIONS",
            "0",
            "Invalid value 0 for configuration num.partitions: Value must be at least 1.",
        ),
    ],
)
def test_an_invalid_variable_is_named(variable: str, text: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as raised:
        load_config(None, {variable: text}, [])
    assert str(raised.value) == f"{variable} in the environment: {complaint}"


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("log.retension.ms=1", "There is no setting log.retension.ms. Is log.retention.ms meant?"),
        ("num.partitions=many", "num.partitions"),
    ],
)
def test_a_file_with_an_invalid_setting_is_named(tmp_path: Path, line: str, complaint: str) -> None:
    file = tmp_path / "server.properties"
    file.write_text(line)
    with pytest.raises(ConfigError) as refused:
        load_config(str(file), {}, [])
    assert str(refused.value).startswith(f"The configuration file {file}: ")
    assert complaint in str(refused.value)


def test_an_overridden_value_in_a_file_is_not_checked(
    tmp_path: Path,
) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=many\nnode.id=none\n")
    config = load_config(str(file), {"BARNABAS_NODE_ID": "7"}, ["num.partitions=3"])
    assert (config.node_id, config.integer("num.partitions")) == (7, 3)


def test_an_overridden_variable_is_not_checked() -> None:
    config = load_config(None, {"BARNABAS_NUM_PARTITIONS": "0"}, ["num.partitions=4"])
    assert config["num.partitions"] == 4


def test_a_typo_in_the_environment_is_refused_too() -> None:
    with pytest.raises(ConfigError, match=r"Is log\.retention\.ms meant"):
        load_config(None, {"BARNABAS_LOG_RETENSION_MS": "1"}, [])


def test_without_any_setting_only_programs_on_this_machine_can_connect() -> None:
    config = load_config(None, {}, [])
    assert [listener.address for listener in config.listeners] == ["127.0.0.1:9092"]
    assert config.warnings == ()
