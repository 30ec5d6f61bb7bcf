"""The check of the connection: a wrong address or topic ends a command before Spark starts."""

import socket
from collections.abc import Sequence
from pathlib import Path

import pytest
from benchmarks.brokers.process import LocalBroker

from barnabas.__main__ import main
from barnabas.pipeline.cli import connectivity
from barnabas.pipeline.cli.connectivity import check_connectivity
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.options import Options
from barnabas.pipeline.servers import Servers, take_servers


def servers(address: str) -> Servers:
    return take_servers(Options({"servers": address}))


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connectivity, "CONNECTIVITY_TIMEOUT_MS", 200)


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that comes as far as Spark fails for another reason."""
    monkeypatch.setenv("JAVA_HOME", "/nowhere")


@pytest.mark.usefixtures("short")
def test_a_server_that_never_answers_is_given_up_after_the_limit() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(PipelineError, match=f"servers: {address} did not answer within"):
            check_connectivity(servers(address))


def commands(address: str, topic: str, directory: Path) -> list[list[str]]:
    at = ["--servers", address]
    ingest = ["ingest", *at, "--topics", topic, "--checkpoint", "c", "--table", "t"]
    return [
        ingest,
        [*ingest, "--group", "g"],
        ["export", *at, "--topics", topic, "--to", str(directory / "out")],
        ["replay", *at, "--from-topics", topic, "--topic", "other", "--progress", "p"],
        ["replay", *at, "--table", "t", "--topic", topic, "--progress", "p"],
    ]


def complaint(arguments: Sequence[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["pipeline", *arguments]) == 1
    output = capsys.readouterr()
    assert (output.out, output.err.count("\n")) == ("", 1)
    return output.err


@pytest.mark.usefixtures("short", "no_spark")
def test_each_command_reports_an_unreachable_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    restore = ["restore", "--servers", "127.0.0.1:1", "--from", str(tmp_path)]
    for arguments in [*commands("127.0.0.1:1", "orders", tmp_path), restore]:
        line = complaint(arguments, capsys)
        assert line.startswith("barnabas: servers: 127.0.0.1:1 cannot be reached")
        assert line.endswith("Is the address right, and is the broker running?\n")


@pytest.mark.usefixtures("no_spark")
def test_each_command_reports_a_missing_topic(
    broker: LocalBroker, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.client.cluster.topics.UNKNOWN_TOPIC_MS", 50)
    for arguments in commands(broker.address, "nosuch", tmp_path):
        line = complaint(arguments, capsys)
        assert line == f"barnabas: There is no topic nosuch at {broker.address}.\n"


def test_an_option_that_the_source_refuses_is_reported_before_any_contact(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ingest = ["pipeline", "ingest", "--servers", "127.0.0.1:1", "--topics", "a", "--checkpoint", "c"]
    assert main([*ingest, "--table", "t", "--option", "startingOfsets=earliest"]) == 2
    assert "startingofsets: there is no such option" in capsys.readouterr().err
