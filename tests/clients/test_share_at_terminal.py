"""`barnabas share` at a terminal: a pseudo-terminal gets the output, and keys decide about records."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from barnabas.__main__ import main
from tests.clients.cluster import NEVER_MS, Cluster, numbered
from tests.clients.installation import installed_barnabas

pytestmark = pytest.mark.barnabas

PROMPT: Final = "[q]uit   lock"


class Session:
    """A process at a pseudo-terminal. `expect` waits for a text, `press` types keys."""

    def __init__(self, process: subprocess.Popen[bytes], terminal: int) -> None:
        self.process = process
        self._terminal = terminal
        self._output = ""
        self._read = 0

    def press(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    def expect(self, text: str) -> str:
        """The output up to this text, which comes after everything expected before."""
        while text not in self._output[self._read :]:
            try:
                self._output += os.read(self._terminal, 4096).decode()
            except OSError:  # the process has closed the terminal
                assert text in self._output[self._read :], self._output
        end = self._output.index(text, self._read) + len(text)
        found, self._read = self._output[self._read : end], end
        return found


@contextmanager
def session(*arguments: str) -> Generator[Session]:
    own, others = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"}
    process = subprocess.Popen(
        [installed_barnabas(), *arguments],
        stdin=others,
        stdout=others,
        stderr=others,
        env=environment,
        start_new_session=True,
    )
    os.close(others)
    try:
        yield Session(process, own)
    finally:
        process.kill()
        process.wait()
        os.close(own)


@pytest.fixture
def workload(cluster: Cluster) -> tuple[str, str]:
    """(topic, group) with four records."""
    topic, group = cluster.topic(), cluster.group(record_lock_duration_ms=NEVER_MS)
    cluster.produce(topic, numbered(4))
    return topic, group


def states(bootstrap: str, group: str, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """By offsets, the states in the table of `barnabas inspect`."""
    assert main(["inspect", group, "--bootstrap", bootstrap]) == 0
    rows = re.findall(r"^  (\d\S*)  +([a-z]+)", capsys.readouterr().out, re.MULTILINE)
    return dict(rows)


def test_keys_accept_reject_release_and_renew(
    bootstrap: str, workload: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    topic, group = workload
    with session("share", group, topic, "--bootstrap", bootstrap) as terminal:
        terminal.expect(f"{topic}-0  offset 0  delivery 1")
        terminal.expect("record-0")
        terminal.expect(PROMPT)
        terminal.press("a")
        terminal.expect("-> accepted")
        terminal.expect("record-1")
        terminal.press("n")
        terminal.expect("-> renewed")
        terminal.expect(PROMPT)
        terminal.press("zj")
        terminal.expect("-> rejected")
        terminal.expect("record-2")
        terminal.press("r")
        terminal.expect("-> released")
        terminal.expect("offset 2  delivery 2")
        terminal.press("q")
        terminal.expect("1 accepted, 1 released, 1 rejected")
        assert terminal.process.wait() == 0
    found = states(bootstrap, group, capsys)
    assert min(found).startswith("2")
    assert set(found.values()) <= {"available", "new"}


def test_a_lock_that_ends_is_told_and_the_next_record_is_shown(
    bootstrap: str, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    topic, group = cluster.topic(), cluster.group(record_lock_duration_ms=1000)
    cluster.produce(topic, numbered(1))
    with session("share", group, topic, "--bootstrap", bootstrap) as terminal:
        terminal.expect("delivery 1")
        cluster.set_group(group, {"share.record.lock.duration.ms": str(NEVER_MS)})
        terminal.expect("The lock has ended; the group delivers the record again.")
        terminal.expect("delivery 2")
        terminal.press("a")
        terminal.expect("-> accepted")
        terminal.press("q")
        assert terminal.process.wait() == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_releases_the_record(
    bootstrap: str, workload: tuple[str, str], capsys: pytest.CaptureFixture[str], number: signal.Signals
) -> None:
    topic, group = workload
    with session("share", group, topic, "--bootstrap", bootstrap) as terminal:
        terminal.expect(PROMPT)
        terminal.process.send_signal(number)
        terminal.expect("0 accepted, 0 released, 0 rejected")
        assert terminal.process.wait() == 130
    assert "acquired" not in states(bootstrap, group, capsys).values()


def test_tables_at_a_terminal_have_colours(bootstrap: str, cluster: Cluster) -> None:
    topic = cluster.topic()
    with session("topics", "describe", topic, "--bootstrap", bootstrap) as terminal:
        terminal.expect(topic)
        assert "\x1b[1m" in terminal.expect("LEADER")
        assert terminal.process.wait() == 0


@pytest.mark.parametrize("arguments", [[], ["--json"], ["--max", "1"]])
def test_without_a_terminal_a_policy_is_needed(
    arguments: list[str], bootstrap: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["share", "g", "t", "--bootstrap", bootstrap, *arguments]) == 2
    assert "--accept, --release or --reject" in capsys.readouterr().err
