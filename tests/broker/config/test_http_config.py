"""The configuration of the HTTP server."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.broker.config import extras
from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.config.errors import ConfigError
from barnabas.broker.config.http_config import TOKEN_BYTES_MAX, HttpConfig, parse_http

TOKEN = "0123456789abcdef"


def parsed(listener: str, *allowed_hosts: str, token_file: Path | None = None) -> HttpConfig:
    config = parse_http(listener, allowed_hosts, None if token_file is None else str(token_file))
    assert config is not None
    return config


def test_http_is_off_unless_a_setting_names_it() -> None:
    assert BrokerConfig({}).http is None


def test_a_setting_of_http_without_a_listener_is_a_warning() -> None:
    config = BrokerConfig({"http.token.file": "/nowhere"})
    assert config.http is None
    assert config.warnings == ("Without http.listener, http.token.file has no effect.",)


@pytest.mark.parametrize(
    ("listener", "host", "port"),
    [
        ("8080", "127.0.0.1", 8080),
        ("0", "127.0.0.1", 0),
        (":8080", "", 8080),
        ("localhost:8080", "localhost", 8080),
        ("[::1]:8080", "::1", 8080),
        ("broker.example:80", "broker.example", 80),
    ],
)
def test_a_port_alone_is_on_this_machine_only(listener: str, host: str, port: int) -> None:
    assert parsed(listener)[:2] == (host, port)


@pytest.mark.parametrize("listener", ["", "x", "127.0.0.1", "70000", "http://127.0.0.1:80", "-1"])
def test_a_wrong_address_is_an_error(listener: str) -> None:
    with pytest.raises(ConfigError, match=r"^http\.listener is neither PORT nor HOST:PORT: "):
        parsed(listener)


def test_http_that_other_machines_can_reach_is_a_warning() -> None:
    warnings = BrokerConfig({"http.listener": ":8080"}).warnings
    assert ["0.0.0.0:8080 over HTTP" in one for one in warnings] == [True]
    for only_here in ("8080", "localhost:8080", "LocalHost:8080", "[::1]:8080"):
        assert BrokerConfig({"http.listener": only_here}).warnings == ()
    trusted = {"http.listener": ":8080", "listeners.allow.unauthenticated": "true"}
    assert BrokerConfig(trusted).warnings == ()


def test_the_names_of_clients_are_compared_in_lower_case() -> None:
    assert parsed("Broker.Example:80", "Barnabas").allowed_hosts == {"broker.example", "barnabas"}
    assert parsed(":80").allowed_hosts == frozenset()


def test_the_token_is_the_content_of_its_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    assert parsed("80", token_file=file).token == TOKEN
    assert parsed("80").token is None


@pytest.mark.parametrize("content", [b"", b"short", b"two words with spaces", b"\xff" * 20, b"a" * 1025])
def test_a_file_that_holds_no_token_is_an_error(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "token"
    file.write_bytes(content)
    with pytest.raises(ConfigError, match=f"16 to {TOKEN_BYTES_MAX} visible ASCII characters"):
        parsed("80", token_file=file)


def test_a_missing_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"token: No such file or directory\.$"):
        parsed("80", token_file=tmp_path / "token")


def test_missing_libraries_are_an_error_that_says_how_to_install_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def find_nothing(_: str) -> None:
        return None

    monkeypatch.setattr(extras, "find_spec", find_nothing)
    with pytest.raises(ConfigError, match=r"needs msgspec, .* 'barnabas\[http\]' .* -e '\.\[http\]'\)\.$"):
        parsed("80")
    with pytest.raises(
        ConfigError, match=r"Listener SASL_SSL needs cryptography, scramp\. .* -e '\.\[security\]'\)\.$"
    ):
        BrokerConfig({"listeners": "SASL_SSL://:1"})
    with pytest.raises(ConfigError, match=r"needs opentelemetry\.sdk, .* -e '\.\[otel\]'\)\.$"):
        BrokerConfig({"opentelemetry.spans.enable": "true"})


def test_a_missing_package_around_a_module_is_missing_too() -> None:
    with pytest.raises(ConfigError, match=r"^x needs nothing\.at\.all\. "):
        extras.require_libraries("x", ["nothing.at.all"], "y")
