"""The commands of docs/command-line.md run one after the other, and print the output of the page.

Times, ids and measured figures may differ. The findings of `doctor` belong to the machine, so only the names
of its checks are compared.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.clients.broker_process import BrokerProcess
from tests.clients.java_build import PROJECT
from tests.clients.page_sessions import run, sessions, words

PAGE = PROJECT / "docs" / "command-line.md"
PORT_OF_THE_PAGE = ":9092"
_CHECK = re.compile(r"^(?:ok|warning|FAILURE) +([a-z ]+): ", re.MULTILINE)


def normal(command: str, output: str) -> list[list[str]]:
    """The words of each line, without the parts that may differ."""
    if "barnabas doctor" in command:
        return [_CHECK.findall(output)]
    if "barnabas bench" in command:
        output = re.sub(r"[\d,.]+", "N", output)
    return words(output)


@pytest.mark.barnabas
def test_the_commands_print_the_output_of_the_page(
    own_broker: BrokerProcess,
    barnabas_command: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(own_broker.data_directory.parent)
    monkeypatch.setenv("BARNABAS_CLIENT_BOOTSTRAP", own_broker.address)
    monkeypatch.setenv("PATH", str(barnabas_command.parent), prepend=os.pathsep)
    shown = sessions(PAGE)
    assert len(shown) > 20
    for command, output in shown:
        is_doctor = "barnabas doctor" in command
        given = f"{command} --listen {own_broker.address}" if is_doctor else command
        exit_code, printed = run(given, capsys)
        printed = printed.replace(f":{own_broker.port}", PORT_OF_THE_PAGE)
        assert normal(command, printed) == normal(command, output), f"{command}\n{printed}"
        assert bool(exit_code) == output.startswith("barnabas: "), command
