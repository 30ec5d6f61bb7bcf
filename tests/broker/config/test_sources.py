"""Reading settings from a properties file, TOML, the environment and flags."""

from pathlib import Path

import pytest

from barnabas.broker.config.errors import ConfigError
from barnabas.broker.config.sources import find_variables, parse_properties, read_file, read_flags
from barnabas.broker.config.tables import environment_names


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("a.b=1", {"a.b": "1"}),
        ("a.b = 1 ", {"a.b": "1 "}),
        ("a: 1\nb 2", {"a": "1", "b": "2"}),
        ("# c=1\n! d=1\n\n   \na=1", {"a": "1"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=b=c", {"a": "b=c"}),
        ("a", {"a": ""}),
        ("a=one,\\\n   two", {"a": "one,two"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a=C:\\\\x\\ty\\u0041", {"a": "C:\\x\tyA"}),
        ("a\\=b=1", {"a=b": "1"}),
        ("a=\\\n# no comment", {"a": "# no comment"}),
        ("a=1\\", {"a": "1"}),
        ("", {}),
    ],
)
def test_properties_are_read_as_java_reads_them(text: str, settings: dict[str, str]) -> None:
    assert parse_properties(text) == settings


def test_toml_tables_and_dotted_keys_are_joined(tmp_path: Path) -> None:
    path = tmp_path / "barnabas.toml"
    path.write_text(
        'num.partitions = 3\nlisteners = ["PLAINTEXT://:1", "X://:2"]\n"log.flush" = "always"\n'
        "[log.retention]\nms = 5\n[auto.create.topics]\nenable = false\n"
    )
    assert read_file(str(path)) == {
        "num.partitions": "3",
        "listeners": "PLAINTEXT://:1,X://:2",
        "log.flush": "always",
        "log.retention.ms": "5",
        "auto.create.topics.enable": "false",
    }


def test_a_properties_file_is_any_other_file(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text("node.id=4\n")
    assert read_file(str(path)) == {"node.id": "4"}


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("missing.toml", None, "cannot be read"),
        ("broken.toml", b"a = ", "is not valid TOML"),
        ("binary.properties", b"\xff\xfe", "cannot be read"),
        ("date.toml", b"a = 2024-01-01", "a is a date, but a setting is text"),
    ],
)
def test_an_invalid_file_is_refused_with_the_reason(
    tmp_path: Path, name: str, content: bytes | None, complaint: str
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=complaint):
        read_file(str(path))


def test_the_environment_is_matched_with_known_names() -> None:
    environ = {
        "BARNABAS_LOG_RETENTION_MS": "5",
        "BARNABAS_NODE_ID": "",
        "HOME": "/",
        "BARNABAS_LOG_TYPO": "1",
    }
    names = {"BARNABAS_LOG_RETENTION_MS": "log.retention.ms", "BARNABAS_NODE_ID": "node.id"}
    assert find_variables(environ, names) == {
        "log.retention.ms": "BARNABAS_LOG_RETENTION_MS",
        "log.typo": "BARNABAS_LOG_TYPO",
    }


@pytest.mark.parametrize("service", ["BARNABAS", "BARNABAS_EXTERNAL"])
def test_kubernetes_variables_of_a_service_are_no_settings(service: str) -> None:
    address = "tcp://10.96.0.17:9092"
    environ = {
        "SERVICE_HOST": "10.96.0.17",
        "SERVICE_PORT": "9092",
        "SERVICE_PORT_KAFKA_PLAIN": "9092",
        "PORT": address,
        "PORT_9092_TCP": address,
        "PORT_9092_TCP_PROTO": "tcp",
        "PORT_9092_TCP_PORT": "9092",
        "PORT_9092_TCP_ADDR": "10.96.0.17",
    }
    assert find_variables({f"{service}_{name}": value for name, value in environ.items()}, {}) == {}


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("BARNABAS_PORT", "9092"),
        ("BARNABAS_SERVICE_PORT", "tcp"),
        ("BARNABAS_SERVICE", "barnabas"),
        ("BARNABAS_PORT_TCP", "9092"),
        ("BARNABAS_LISTENERS", "tcp://10.96.0.17:9092"),
    ],
)
def test_variables_that_only_look_like_a_services_are_settings(variable: str, value: str) -> None:
    assert list(find_variables({variable: value}, {}).values()) == [variable]


def test_no_setting_is_mistaken_for_a_services_variable() -> None:
    names = environment_names("BARNABAS_")
    for value in ("1", "tcp://10.96.0.17:9092"):
        assert set(find_variables(dict.fromkeys(names, value), names)) == set(names.values())


def test_flags_are_name_and_value() -> None:
    assert read_flags(["a=1", " b = x=y"]) == {"a": "1", "b": " x=y"}


@pytest.mark.parametrize("flag", ["a", "=1", ""])
def test_a_flag_without_name_or_value_is_refused(flag: str) -> None:
    with pytest.raises(ConfigError, match="not of the form NAME=VALUE"):
        read_flags([flag])
