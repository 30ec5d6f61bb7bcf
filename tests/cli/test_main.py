"""The command line: exit codes, both outputs, signals. The broker is a stand-in."""

import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
import structlog

from barnabas.__main__ import main
from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.runtime.running_code import running_code

STAND_IN = """
import asyncio, gc, logging, socket, sys, types, warnings
from barnabas.runtime.deadlines import Deadlines
from barnabas.runtime.long_work import LongWork
from barnabas.runtime.metrics import Metrics
from barnabas.runtime.response_budget import ResponseBudget
from barnabas.broker.quotas.client_quotas import ClientQuotas, QuotaWindows
from barnabas.broker.quotas.connection_quotas import ConnectionQuotas
from barnabas.storage.errors import DirectoryLocked
from barnabas.storage.filesystem import RealFileSystem

class Broker:
    cluster_id = "c1"

    def __init__(self, config, clock):
        if config.log_directory == "locked":
            raise DirectoryLocked("locked", 4711)
        if config.log_directory == "faulty":
            warnings.warn("This is deprecated.", UserWarning)
            asyncio.get_running_loop().call_exception_handler({"message": "The loop met an error."})
            logging.getLogger("library").error("No object.")
            raise RuntimeError("a bug")
        if config.log_directory == "missing":
            raise FileNotFoundError(2, "No such file or directory", "missing")
        self.full = config.log_directory == "full"
        self.deaf = config.log_directory == "deaf"
        self.metrics, self.clock = Metrics(), clock
        windows = QuotaWindows(sample_count=11, window_ms=1000)
        self.deadlines = Deadlines(clock)
        self.long_work = LongWork(RealFileSystem())
        self.response_budget = ResponseBudget()
        self.quotas = ClientQuotas(windows, windows, clock.monotonic_ms)
        self.connection_quotas = ConnectionQuotas(windows, clock.monotonic_ms)
        self.dynamic_settings = self.idle_logs = self
        self.failed = asyncio.get_running_loop().create_future()
        if config.log_directory == "failing":
            self.failed.set_result(OSError("__cluster_metadata-0 forgot"))

    def begin_to_open(self):
        if self.deaf:
            gc.unfreeze()
            for each in gc.get_objects():
                if isinstance(each, socket.socket) and each.fileno() >= 0 and each.getsockopt(1, 30):
                    each.shutdown(socket.SHUT_RDWR)

    def __getattr__(self, name):
        return None  # a part for a handler, which no client calls

    async def close(self):
        print("closed", flush=True)
        if self.full:
            raise OSError(28, "No space left on device")

    def connection_closed(self, connection_id):
        pass

    def bind_server(self, limit_connections, keys_changed):
        pass

async def open_broker(config, clock, open_segments_max):
    return Broker(config, clock)

module = types.ModuleType("barnabas.broker.node.opening")
module.open_broker = open_broker
sys.modules["barnabas.broker.node.opening"] = module
from barnabas.__main__ import main
sys.exit(main())
"""


@contextmanager
def serving(*arguments: str, environ: Mapping[str, str] | None = None) -> Generator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", STAND_IN, "serve", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": os.environ.get("PYTHONPATH", ""), **(environ or {})},
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def address_of(bound: socket.socket) -> str:
    host, port = bound.getsockname()
    return f"{host}:{port}"


def port_in(line: str) -> int:
    return int(line.split(",")[0].rpartition(":")[2])


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Generator[None]:
    """Restores the logging of the process, which the command line configures."""
    handlers, level = logging.root.handlers[:], logging.root.level
    yield
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)
    structlog.reset_defaults()


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["serve", "--help"],
        ["ranges", "--help"],
        ["dlq", "--help"],
        ["dlq", "redrive", "--help"],
        ["share", "--help"],
        ["inspect", "--help"],
        ["browse", "--help"],
        ["records", "archive", "--help"],
        ["healthcheck", "--help"],
    ],
)
def test_help_goes_to_standard_output(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 0
    assert "usage: barnabas" in capsys.readouterr().out


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert re.fullmatch(rf"barnabas 0\.\S+ \({running_code()}\)\n", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["inspect"], "GROUP"),
        (["inspect", "g", "orders:x"], "'orders:x' is not TOPIC or TOPIC:PARTITION, such as orders:0"),
        (["inspect", "g", "--limit", "0"], "'0' is not a number from 1 on"),
        (["inspect", "g", "--from-offset", "-1"], "'-1' is not a number from 0 on"),
        (["inspect", "g", "--state", "lost"], "invalid choice: 'lost'"),
        (["records", "release", "g", "orders", "0", "1-"], "'1-' is not an offset or a range of offsets"),
        (["records", "delete", "g", "orders", "0", "1"], "invalid choice: 'delete'"),
        (["inspect", "g", "--bootstrap", "broker:x"], "--bootstrap: 'broker:x' is not the address"),
    ],
)
def test_a_wrong_command_line_of_inspection_is_exit_code_2(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        exit_code = main(arguments)
    except SystemExit as ended:
        exit_code = int(ended.code or 0)
    output = capsys.readouterr()
    assert (exit_code, output.out) == (2, "")
    assert complaint in output.err


def test_inspect_without_a_broker_is_one_line_and_exit_code_4(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.cli.target.GIVE_UP_MS", 1)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = address_of(taken)
    assert main(["inspect", "g", "--bootstrap", address]) == 4
    output = capsys.readouterr()
    assert output.out == ""
    assert "cannot be reached" in output.err
    assert output.err.count("\n") == 1


def test_produce_without_a_broker_prints_no_count(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.cli.target.GIVE_UP_MS", 1)
    (lines := tmp_path / "lines").write_text("one\n")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = address_of(taken)
    assert main(["produce", "orders", str(lines), "--bootstrap", address]) == 4
    output = capsys.readouterr()
    assert output.out == ""
    assert "cannot be reached" in output.err
    assert output.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--set", "log.retention.mss=1"], "There is no setting log.retention.mss"),
        (["--set", "nonsense"], "NAME=VALUE"),
        (["--listen", "nowhere"], "--listen: 'nowhere' is not HOST:PORT, such as 127.0.0.1:9092."),
        (["--listen", "a..b:9092"], "--listen: 'a..b:9092' has the host 'a..b', which is not a valid name."),
        (
            ["--listen", "127.0.0.1:99999"],
            "--listen: '127.0.0.1:99999' has the port 99999, but a port is a number from 0 to 65535.",
        ),
        (["--data-dir", ""], "--data-dir is empty, and must name a directory."),
        (["--set", "listeners=nowhere"], "which is not NAME://HOST:PORT"),
        (["--config", "/nonexistent/server.properties"], "cannot be read"),
    ],
)
def test_a_wrong_configuration_is_one_line_and_exit_code_2(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", *arguments]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert complaint in output.err
    assert output.err.count("\n") == 1


def test_one_line_names_the_address_and_sigterm_ends_the_broker_in_order(tmp_path: Path) -> None:
    with serving("--listen", "127.0.0.1:0", "--data-dir", str(tmp_path)) as process:
        line = first_line(process)
        port = port_in(line)
        places = f"127.0.0.1:{port}, data in {tmp_path}, cluster c1"
        assert line == f"barnabas serves {places}, with {running_code()} code\n"
        with socket.create_connection(("127.0.0.1", port)):
            process.send_signal(signal.SIGTERM)
            output, errors = process.communicate()
        assert (process.returncode, output) == (0, "closed\n")
        (line,) = errors.splitlines()
        assert "stopped" in line


def test_the_ready_file_names_the_address(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    with serving("--listen", "127.0.0.1:0", "--ready-file", str(ready)) as process:
        port = port_in(first_line(process))
        assert ready.read_text() == f"127.0.0.1:{port}\n"
        process.send_signal(signal.SIGINT)
        assert process.wait() == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("wrong", [["--data-dir", "missing"], ["--set", "nonsense"]])
def test_the_ready_file_of_an_earlier_broker_is_removed_even_if_the_next_cannot_start(
    tmp_path: Path, wrong: list[str]
) -> None:
    ready = tmp_path / "ready"
    ready.write_text("127.0.0.1:4711\n")
    with serving("--listen", "127.0.0.1:0", "--ready-file", str(ready), *wrong) as process:
        assert process.wait() != 0
    assert list(tmp_path.iterdir()) == []


def test_an_address_in_use_is_one_line_and_exit_code_1() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, serving(f"--listen={address_of(taken)}") as process:
        output, errors = process.communicate()
    assert process.returncode == 1
    assert output == "closed\n"
    assert "address already in use" in errors.lower()
    assert errors.count("\n") == 1


def test_a_locked_data_directory_is_one_line_and_exit_code_1() -> None:
    with serving("--listen", "127.0.0.1:0", "--data-dir", "locked") as process:
        output, errors = process.communicate()
    assert (process.returncode, output) == (1, "")
    assert errors == (
        "barnabas: locked is used by a running broker, process 4711. Stop it first, or name another "
        "directory.\n"
    )


def test_a_data_directory_that_cannot_be_made_is_named_in_one_line() -> None:
    with serving("--listen", "127.0.0.1:0", "--data-dir", "missing") as process:
        output, errors = process.communicate()
    assert (process.returncode, output) == (1, "")
    assert errors == "barnabas: Cannot serve: missing: No such file or directory.\n"


def test_a_ready_file_that_cannot_be_written_is_reported_before_serving(tmp_path: Path) -> None:
    ready = tmp_path / "nowhere" / "ready"
    with serving("--listen", "127.0.0.1:0", "--ready-file", str(ready)) as process:
        output, errors = process.communicate()
    assert (process.returncode, output) == (1, "")
    assert errors == f"barnabas: --ready-file cannot be written: {ready}.tmp: No such file or directory.\n"


def test_a_failure_to_stop_is_reported_as_such() -> None:
    with serving("--listen", "127.0.0.1:0", "--data-dir", "full") as process:
        first_line(process)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate()
    assert process.returncode == 1
    assert errors == (
        "barnabas: Stopped, but closing the data directory failed: No space left on device; the next start "
        "recovers from the log.\n"
    )


def test_a_broker_whose_metadata_log_fails_ends_with_the_reason() -> None:
    with serving("--listen", "127.0.0.1:0", "--data-dir", "failing") as process:
        _, errors = process.communicate()
    assert process.returncode == 1
    assert errors == (
        "barnabas: The metadata log failed, so the broker ended: __cluster_metadata-0 forgot. The next start "
        "recovers it.\n"
    )


def test_a_broker_that_cannot_accept_connections_ends_with_the_reason() -> None:
    with serving("--listen", "127.0.0.1:0", "--data-dir", "deaf") as process:
        port = port_in(first_line(process))
        _, errors = process.communicate()
    assert process.returncode == 1
    assert errors == (
        f"barnabas: The listener on port {port} failed, so the broker ended: Invalid argument.\n"
    )


def test_of_a_failure_to_start_and_one_to_stop_the_first_is_reported() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        serving(f"--listen={address_of(taken)}", "--data-dir", "full") as process,
    ):
        _, errors = process.communicate()
    assert process.returncode == 1
    assert "address already in use" in errors.lower()
    assert "No space left" not in errors


@pytest.mark.parametrize("prefix", ["KAFKA", "BARNABAS"])
def test_listeners_may_come_from_the_environment_with_kafkas_names(prefix: str) -> None:
    environ = {
        f"{prefix}_LISTENERS": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:9093",
        f"{prefix}_ADVERTISED_LISTENERS": "PLAINTEXT://broker:9092",
    }
    with serving(environ=environ) as process:
        line = first_line(process)
    assert line.startswith("barnabas serves 127.0.0.1:")
    assert ":9093" not in line


def test_the_health_check_fails_without_an_answer(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        assert main(["healthcheck", address_of(unused)]) == 1
    assert "No broker answers" in capsys.readouterr().err


def test_ranges_fail_without_a_broker(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.cli.target.GIVE_UP_MS", 1)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        assert main(["ranges", "billing", "--bootstrap", address_of(unused)]) == 4
    output = capsys.readouterr()
    assert output.out == ""
    assert "cannot be reached" in output.err
    assert output.err.count("\n") == 1


@pytest.mark.parametrize("address", ["", "nowhere:x", "127.0.0.1:65536"])
def test_ranges_refuse_an_invalid_address(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ranges", "billing", "--bootstrap", address]) == 2
    assert "--bootstrap: " in capsys.readouterr().err


@pytest.mark.parametrize("address", ["nowhere", "a..b:9092", "127.0.0.1:65536"])
def test_the_health_check_refuses_an_invalid_address(
    address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["healthcheck", address]) == 2
    assert repr(address) in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (
            ["serve", "--lisen", ":9092"],
            "unrecognized arguments: --lisen :9092; --lisen is unknown, is --listen",
        ),
        (["log", "dump", "d", "--grup=x"], "--grup is unknown, is --group meant?"),
        (["pipeline", "ingest", "--servrs", "x"], "--servrs is unknown, is --servers meant?"),
    ],
)
def test_a_misspelt_option_is_reported_with_the_nearest_one(
    arguments: list[str], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert hint in capsys.readouterr().err


def test_the_help_of_serve_has_the_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["serve", "--help"])
    told = " ".join(capsys.readouterr().out.split("options:")[1].split())
    defaults = BrokerConfig({})
    assert f"(default: {defaults.listeners[0].address}, or the setting listeners)" in told
    assert f"(default: ./{defaults.log_directory}, or the setting log.dirs)" in told
    without_default = {"--help", "--set"}
    assert told.count("(default: ") == len(set(re.findall(r"--[a-z-]+", told)) - without_default)


@pytest.mark.parametrize(
    ("arguments", "exit_code", "told"),
    [
        (
            ["--data-dir", "d", "--listen", ":0"],
            2,
            "Set listeners.allow.unauthenticated=true if only trusted",
        ),
        (
            ["--data-dir", "d", "--listen", ":0", "--set", "listeners.allow.unauthenticated=true"],
            0,
            "barnabas serves 0.0.0.0:",
        ),
        (["--data-dir", "missing"], 1, "Cannot serve: missing: No such file or directory."),
        (["--set", "nonsense"], 2, "--set nonsense is not of the form NAME=VALUE."),
        (["--lisen", ":0"], 2, "--lisen is unknown, is --listen meant?"),
        (["--data-dir", "faulty"], 1, "uncaught exception"),
        (["--data-dir", "faulty"], 1, "This is deprecated."),
        (["--data-dir", "faulty"], 1, "The loop met an error."),
    ],
)
def test_with_json_every_line_is_an_object(arguments: list[str], exit_code: int, told: str) -> None:
    with serving("--log-format", "json", *arguments) as process:
        line = first_line(process)
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate()
    rows = [json.loads(one) for one in (line + output + errors).splitlines() if one != "closed"]
    assert process.returncode == exit_code
    assert any(told in row["event"] for row in rows)
    assert all(row["level"] and row["timestamp"] for row in rows)
