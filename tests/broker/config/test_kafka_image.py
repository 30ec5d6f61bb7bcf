"""The environment variables of Apache Kafka's container image."""

from pathlib import Path

import pytest

from barnabas.broker.config.errors import ConfigError
from barnabas.broker.config.kafka_image import read_image_variables
from barnabas.broker.config.loading import load_config
from barnabas.broker.config.sources import DEFAULTS_VARIABLE


def test_every_setting_is_read_from_its_variable() -> None:
    environ = {"KAFKA_LOG_RETENTION_MS": "5", "KAFKA_NODE_ID": "3", "KAFKA_NUM_PARTITIONS": ""}
    config = load_config(None, environ, [])
    assert (config["log.retention.ms"], config.node_id, config["num.partitions"]) == (5, 3, 1)
    assert config.warnings == ()


def test_underscores_stand_for_dots_underscores_and_hyphens() -> None:
    image = read_image_variables({"KAFKA_LISTENER_NAME_A__B___C_SSL_PROTOCOL": "x"}, ())
    assert image.texts == {"listener.name.a_b-c.ssl.protocol": "x"}


def test_the_variables_win_over_the_file_as_in_kafkas_image(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text("num.partitions=2\nlog.roll.hours=2\n")
    environ = {"KAFKA_NUM_PARTITIONS": "3", "KAFKA_NODE_ID": "3", "BARNABAS_NODE_ID": "4"}
    config = load_config(str(path), environ, [])
    assert (config["num.partitions"], config["log.roll.hours"], config.node_id) == (3, 2, 4)


def test_the_defaults_of_the_image_are_weakest(tmp_path: Path) -> None:
    defaults, file = tmp_path / "defaults.properties", tmp_path / "server.properties"
    defaults.write_text("num.partitions=2\nlog.roll.hours=2\nnode.id=2\nlog.roll.jitter.hours=1\n")
    file.write_text("num.partitions=3\n")
    environ = {DEFAULTS_VARIABLE: str(defaults), "KAFKA_NODE_ID": "4"}
    config = load_config(str(file), environ, ["log.roll.hours=5"])
    names = ("num.partitions", "node.id", "log.roll.hours", "log.roll.jitter.hours")
    assert [config[name] for name in names] == [3, 4, 5, 1]


def test_a_wrong_default_is_named_with_its_file(tmp_path: Path) -> None:
    path = tmp_path / "defaults.properties"
    path.write_text("num.partition=2\n")
    with pytest.raises(ConfigError) as refused:
        load_config(None, {DEFAULTS_VARIABLE: str(path)}, [])
    assert str(refused.value) == (
        f"The file of defaults {path}: There is no setting num.partition. Is num.partitions meant?"
    )


def test_settings_that_only_kafka_uses_give_the_same_warning_as_in_a_file() -> None:
    environ = {
        "KAFKA_PROCESS_ROLES": "broker,controller",
        "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9093",
    }
    assert load_config(None, environ, []).warnings == (
        "These settings of Apache Kafka have no effect here: controller.quorum.voters, process.roles.",
    )


def test_variables_of_kafkas_scripts_have_no_effect_and_one_warning_names_them() -> None:
    environ = {"KAFKA_HEAP_OPTS": "-Xmx1G", "KAFKA_OPTS": "-Dx=y", "KAFKA_QQQQ": "1"}
    assert load_config(None, environ, []).warnings == (
        "These variables in the environment have no effect here: KAFKA_HEAP_OPTS, KAFKA_OPTS, KAFKA_QQQQ.",
    )


def test_a_misspelt_variable_gives_a_warning_with_the_nearest_name() -> None:
    assert load_config(None, {"KAFKA_LOG_RETENSION_MS": "1"}, []).warnings == (
        "KAFKA_LOG_RETENSION_MS in the environment sets nothing. Is KAFKA_LOG_RETENTION_MS meant?",
    )


@pytest.mark.parametrize(
    ("variable", "text", "complaint"),
    [
        (
            "KAFKA_NUM_PARTITIONS",
            "0",
            "Invalid value 0 for configuration num.partitions: Value must be at least 1.",
        ),
        ("KAFKA_BROKER_ID", "1", "The setting broker.id was renamed: it is node.id now."),
        (
            "KAFKA_ZOOKEEPER_CONNECT",
            "z:2181",
            "There is no setting zookeeper.connect: there is no ZooKeeper.",
        ),
    ],
)
def test_a_value_that_would_be_lost_is_refused(variable: str, text: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load_config(None, {variable: text}, [])
    assert str(refused.value) == f"{variable} in the environment: {complaint}"


def test_protection_is_refused_by_the_name_of_its_variable() -> None:
    with pytest.raises(ConfigError, match=r"KAFKA_SUPER_USERS \(access rules\)"):
        load_config(None, {"KAFKA_SUPER_USERS": "User:admin"}, [])


def test_advertised_listeners_alone_open_their_ports_on_all_interfaces() -> None:
    environ = {"KAFKA_ADVERTISED_LISTENERS": "INSIDE://broker:19092, OUTSIDE://[::1]:9092"}
    inside, outside = load_config(None, environ, []).listeners
    assert (inside.name, inside.host, inside.port, inside.advertised_host) == ("INSIDE", "", 19092, "broker")
    assert (outside.name, outside.host, outside.port, outside.advertised_host) == ("OUTSIDE", "", 9092, "::1")


def test_listeners_that_are_given_are_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text("listeners=A://127.0.0.1:3\n")
    (listener,) = load_config(str(path), {"KAFKA_ADVERTISED_LISTENERS": "A://a:2"}, []).listeners
    assert (listener.port, listener.advertised_port) == (3, 2)


def test_the_listeners_of_the_defaults_are_replaced(tmp_path: Path) -> None:
    path = tmp_path / "defaults.properties"
    path.write_text("listeners=PLAINTEXT://:9092\n")
    environ = {"KAFKA_ADVERTISED_LISTENERS": "A://a:2", DEFAULTS_VARIABLE: str(path)}
    (listener,) = load_config(None, environ, []).listeners
    assert (listener.name, listener.port) == ("A", 2)


def test_only_the_image_reads_the_variable_of_the_cluster(tmp_path: Path) -> None:
    path = tmp_path / "defaults.properties"
    path.write_text("")
    cluster = {"CLUSTER_ID": "4L6g3nShT-eMCtK--X86sw"}
    assert load_config(None, cluster, []).cluster_id is None
    assert (
        load_config(None, {**cluster, DEFAULTS_VARIABLE: str(path)}, []).cluster_id == cluster["CLUSTER_ID"]
    )


@pytest.mark.parametrize("cluster_id", ["", "a b", "a\nb", "x" * 256])
def test_an_unsuitable_cluster_id_is_refused(cluster_id: str) -> None:
    with pytest.raises(ConfigError, match="must have 1 to 255 characters"):
        load_config(None, {}, [f"cluster.id={cluster_id}"])


def test_kubernetes_variables_of_a_service_named_kafka_are_no_settings() -> None:
    environ = {"KAFKA_PORT": "tcp://10.96.0.17:9092", "KAFKA_SERVICE_HOST": "10.96.0.17"}
    assert load_config(None, environ, []).warnings == ()
