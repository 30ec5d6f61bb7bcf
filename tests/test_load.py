"""The load for the tests: it is there during the command, and ends with it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.load import busy_processes, main

PROJECT = Path(__file__).resolve().parents[1]


def test_the_exit_code_is_that_of_the_command() -> None:
    assert main(["--times", "1", "--", sys.executable, "-c", "import sys; sys.exit(7)"]) == 7


def test_a_command_that_a_signal_ends_fails() -> None:
    killed = f"import os; os.kill(os.getpid(), {int(signal.SIGKILL)})"
    assert main(["--times", "1", "--", sys.executable, "-c", killed]) == 128 + signal.SIGKILL


def test_an_unknown_command_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--", "no-such-command"])
    assert (ended.value.code, capsys.readouterr().err) == (127, "load: there is no command no-such-command\n")


def test_the_command_keeps_its_own_options(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--times", "0", "--", "echo", "--times", "9"]) == 0
    assert capfd.readouterr().out == "--times 9\n"


def test_the_busy_processes_run_until_the_end_of_the_block() -> None:
    with busy_processes(2) as processes:
        assert [process.poll() for process in processes] == [None, None]
    assert all(process.returncode == -signal.SIGKILL for process in processes)


def test_the_busy_processes_end_with_a_program_that_is_killed() -> None:
    """They inherit its output, so the pipe ends when the last of them has ended."""
    kills_itself = "with busy_processes(2):\n    os.kill(os.getpid(), 9)"
    program = f"import os\nfrom tests.load import busy_processes\n{kills_itself}"
    killed = subprocess.run([sys.executable, "-c", program], cwd=PROJECT, stdout=subprocess.PIPE, check=False)
    assert killed.returncode == -signal.SIGKILL
