"""The completion in a real bash: commands, options, choices, and names from the broker."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from barnabas.__main__ import command_parser, main
from tests.cli.commands.parsers import parsers_in
from tests.clients.cluster import Cluster, unique
from tests.clients.polling import eventually

pytestmark = pytest.mark.barnabas

_SCRIPT = """\
eval "$(barnabas completion bash)"
COMP_LINE=$1 COMP_POINT=${#1} COMP_TYPE=9
_python_argcomplete barnabas
printf '%s\\n' "${COMPREPLY[@]}"
"""


def completions(line: str, command: Path, bootstrap: str = "127.0.0.1:1") -> list[str]:
    """The words that bash offers at the end of the line."""
    path = os.pathsep.join((str(command.parent), os.environ["PATH"]))
    ended = subprocess.run(
        ["bash", "-c", _SCRIPT, "bash", line],
        env={**os.environ, "PATH": path, "BARNABAS_CLIENT_BOOTSTRAP": bootstrap},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stderr == ""
    return [word.strip() for word in ended.stdout.splitlines() if word.strip()]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("barnabas gro", ["groups"]),
        ("barnabas groups reset g --to-e", ["--to-earliest"]),
        ("barnabas inspect g t --state acq", ["acquired"]),
        ("barnabas config get bro", ["broker"]),
        ("barnabas pipeline exp", ["export"]),
        ("barnabas log dump --ind", ["--indexes"]),
        ("barnabas groups describe 'open", []),
    ],
)
def test_words_of_the_command_line_are_completed(line: str, words: list[str], barnabas_command: Path) -> None:
    assert completions(line, barnabas_command) == words


@pytest.mark.parametrize("command", ["groups", "pipeline"])
def test_all_actions_of_a_command_are_completed(command: str, barnabas_command: Path) -> None:
    actions = list(parsers_in(parsers_in(command_parser())[command]))
    words = completions(f"barnabas {command} ", barnabas_command)
    assert [word for word in words if not word.startswith("-")] == actions
    start = actions[0][:2]
    expected = [action for action in actions if action.startswith(start)]
    assert completions(f"barnabas {command} {start}", barnabas_command) == expected


def wait_for_completions(line: str, words: list[str], command: Path, bootstrap: str) -> None:
    """A completion does not wait for a broker that answers late: then it has no names."""
    eventually(lambda: completions(line, command, bootstrap) == words, awaited=f"{words} are offered")


def test_names_of_topics_and_groups_come_from_the_broker(
    bootstrap: str, cluster: Cluster, barnabas_command: Path
) -> None:
    topic, group = cluster.topic(name=unique("completed")), unique("completing")
    assert main(["produce", topic, os.devnull, "--bootstrap", bootstrap]) == 0
    assert main(["consume", topic, "--group", group, "--idle", "1s", "--bootstrap", bootstrap]) == 6
    for line, names in (
        ("barnabas topics describe completed", [topic]),
        ("barnabas consume completed", [topic]),
        ("barnabas groups describe completing", [group]),
    ):
        wait_for_completions(line, names, barnabas_command, bootstrap)


def test_no_broker_means_no_names(barnabas_command: Path) -> None:
    assert completions("barnabas topics describe x", barnabas_command) == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "barnabas" in script
    assert "_ARGCOMPLETE" in script
