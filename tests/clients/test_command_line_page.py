"""The commands of docs/command-line.md run one after the other, and print the output of the page.

Those with a pipe run in a shell, the others in this process, which is quicker.

Times, ids and measured figures may differ. The findings of `doctor` belong to the machine, so only the names
of its checks are compared.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from barnabas.__main__ import main
from tests.clients.broker_process import BrokerProcess
from tests.clients.java_build import PROJECT

PAGE = PROJECT / "docs" / "command-line.md"
PORT_OF_THE_PAGE = ":9092"
_SESSION = re.compile(r"^    \$ (.+)\n((?:^    (?!\$ ).*\n)*)", re.MULTILINE)
_VARYING = (
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z"), "TIME"),
    (re.compile(r'("\w+_ms": )\d+'), r"\1MS"),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}"), "UUID"),
    (re.compile(r"(?<=\s)[\w-]{22}(?=\s)"), "MEMBER"),
)
_CHECK = re.compile(r"^(?:ok|warning|FAILURE) +([a-z ]+): ", re.MULTILINE)


def sessions() -> list[tuple[str, str]]:
    """Each command of the page, and its output."""
    found = _SESSION.findall(PAGE.read_text(encoding="utf-8"))
    return [(command, re.sub(r"^    ", "", output, flags=re.MULTILINE)) for command, output in found]


def normal(command: str, output: str) -> list[str]:
    """The output without the parts that may differ."""
    if "barnabas doctor" in command:
        return _CHECK.findall(output)
    if "barnabas bench" in command:
        return re.sub(r"[\d,.]+", "N", output).split()
    for pattern, word in _VARYING:
        output = pattern.sub(word, output)
    return output.split()


def run(command: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """The exit code, and both outputs."""
    if "|" in command:
        ended = subprocess.run(
            ["bash", "-c", command], capture_output=True, text=True, timeout=60, check=False
        )
        return ended.returncode, ended.stdout + ended.stderr
    _, *arguments = shlex.split(command)
    exit_code = main(arguments)
    output = capsys.readouterr()
    return exit_code, output.out + output.err


@pytest.mark.barnabas
@pytest.mark.timeout(300)
def test_the_session_on_the_page(
    own_broker: BrokerProcess,
    barnabas_command: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(own_broker.data_directory.parent)
    monkeypatch.setenv("BARNABAS_CLIENT_BOOTSTRAP", own_broker.address)
    monkeypatch.setenv("PATH", str(barnabas_command.parent), prepend=os.pathsep)
    shown = sessions()
    assert len(shown) > 20
    for command, output in shown:
        is_doctor = "barnabas doctor" in command
        given = f"{command} --listen {own_broker.address}" if is_doctor else command
        exit_code, printed = run(given, capsys)
        printed = printed.replace(f":{own_broker.port}", PORT_OF_THE_PAGE)
        assert normal(command, printed) == normal(command, output), f"{command}\n{printed}"
        assert bool(exit_code) == output.startswith("barnabas: "), command
