"""The options of every command that asks a broker, and the exit codes of its errors."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

import pytest

from barnabas.broker.config.sources import find_variables
from barnabas.cli.commands.connecting import (
    BOOTSTRAP_VARIABLE,
    SECURITY_VARIABLE,
    add_connection,
    add_json,
    run_client,
    target_of,
)
from barnabas.cli.exit_codes import ExitCode
from barnabas.cli.printing import Printer
from barnabas.cli.target import NotFoundError, RefusedError, Target
from barnabas.client.errors import (
    AcknowledgeError,
    AuthenticationError,
    BrokerError,
    BrokerUnavailableError,
    MisuseError,
    ProduceError,
    RecordsGoneError,
    TransactionAbortedError,
    UnknownTopicError,
    UnsupportedBrokerError,
)
from barnabas.protocol.errors import ErrorCode


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_connection(parser)
    add_json(parser)
    options = parser.parse_args(arguments)
    options.command = "topics"
    return options


@pytest.mark.parametrize(
    ("arguments", "environment", "bootstrap"),
    [
        ([], {}, "127.0.0.1:9092"),
        ([], {BOOTSTRAP_VARIABLE: ""}, "127.0.0.1:9092"),
        ([], {BOOTSTRAP_VARIABLE: "one:1,two:2"}, "one:1,two:2"),
        (["--bootstrap", "three:3"], {BOOTSTRAP_VARIABLE: "one:1"}, "three:3"),
    ],
)
def test_the_brokers_are_those_of_the_option_or_the_environment_or_the_default(
    arguments: list[str], environment: Mapping[str, str], bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(BOOTSTRAP_VARIABLE, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    target = target_of(parsed(*arguments))
    assert (target.bootstrap, target.client_id) == (bootstrap, "barnabas-topics")


def test_security_comes_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = tmp_path / "client.properties"
    settings.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.username=u\nsasl.password=p\n"
    )
    monkeypatch.setenv(SECURITY_VARIABLE, str(settings))
    assert target_of(parsed()).security.username == "u"


@pytest.mark.parametrize("name", [BOOTSTRAP_VARIABLE, SECURITY_VARIABLE])
def test_a_mistake_in_the_environment_names_the_variable(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "/nowhere:x")
    with pytest.raises(ValueError, match=f"^{name}: "):
        target_of(parsed())


def test_a_broker_accepts_the_variables_of_clients_in_its_environment() -> None:
    environ = {BOOTSTRAP_VARIABLE: "one:1", SECURITY_VARIABLE: "file", "BARNABAS_LOG_DIRS": "x"}
    assert find_variables(environ, {}) == {"log.dirs": "BARNABAS_LOG_DIRS"}


@pytest.mark.parametrize(
    ("error", "exit_code", "line"),
    [
        (BrokerUnavailableError("No broker."), ExitCode.NOT_CONNECTED, "No broker."),
        (AuthenticationError("wrong password"), ExitCode.NOT_CONNECTED, "wrong password."),
        (BrokerError(ErrorCode.invalid_config, "bad"), ExitCode.REFUSED, "INVALID_CONFIG: bad."),
        (BrokerError(ErrorCode.non_empty_group), ExitCode.REFUSED, "NON_EMPTY_GROUP."),
        (
            UnsupportedBrokerError(ErrorCode.unsupported_version, "too old"),
            ExitCode.REFUSED,
            "too old. Use another.",
        ),
        (ProduceError(ErrorCode.message_too_large, "t", 0, "big"), ExitCode.REFUSED, "big."),
        (AcknowledgeError(ErrorCode.invalid_record_state, "t", 0, [1]), ExitCode.REFUSED, "t-0."),
        (UnknownTopicError(["orders"]), ExitCode.NOT_FOUND, "There is no topic orders."),
        (RecordsGoneError("t", 0, 1, 2, 3), ExitCode.NOT_FOUND, "no record at offset 1"),
        (NotFoundError("There is no group g; is h meant?"), ExitCode.NOT_FOUND, "is h meant?\n"),
        (RefusedError("It has members"), ExitCode.REFUSED, "It has members."),
        (MisuseError("There is no broker 7."), ExitCode.USAGE, "There is no broker 7."),
        (TransactionAbortedError(ValueError("x")), ExitCode.FAILED, "must be aborted: x."),
        (KeyboardInterrupt(), ExitCode.STOPPED, ""),
    ],
)
def test_each_error_is_one_line_and_has_its_exit_code(
    error: BaseException, exit_code: ExitCode, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async def fail(_target: Target, _printer: Printer) -> int:
        raise error

    assert run_client(parsed(), fail, unsupported="Use another.") == exit_code
    output = capsys.readouterr()
    assert output.out == ""
    assert line in output.err
    assert output.err.count("\n") == (1 if line else 0)


def test_a_wrong_address_is_a_mistake_of_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    async def work(_target: Target, _printer: Printer) -> int:
        raise AssertionError("nothing may be asked")

    assert run_client(parsed("--bootstrap", "a:b"), work) == ExitCode.USAGE
    assert capsys.readouterr().err.startswith("barnabas: --bootstrap: ")
