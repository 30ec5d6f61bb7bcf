"""The commands of docs/http.md print the page's output; only times, ids and the port differ."""

from __future__ import annotations

import asyncio
import re
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from tests.clients.broker_process import TEST_SETTINGS, BrokerProcess, reserved_port, started
from tests.clients.java_build import PROJECT
from tests.clients.test_inspection_page import story

PAGE = PROJECT / "docs" / "http.md"
TOKEN = "the-token-of-this-test"
VARYING = (
    (re.compile(r'("\w+_ms":)\d+'), r"\1MS"),
    (re.compile(r'("topic_id":)"[0-9a-f-]{36}"'), r"\1ID"),
)


def normal(line: str) -> str:
    """The line without times and ids."""
    for pattern, word in VARYING:
        line = pattern.sub(word, line)
    return line


def sessions() -> list[tuple[str, str]]:
    """Each command of the page, and the line that it prints."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    return [
        (command.removeprefix("    $ "), printed.strip())
        for command, printed in pairwise(lines)
        if command.startswith("    $ ")
    ]


@pytest.mark.barnabas
async def test_the_commands_print_the_output_of_the_page(barnabas_command: Path, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(TOKEN, encoding="utf-8")
    port = reserved_port()
    given = {"http.listener": str(port), "http.token.file": str(tmp_path / "token"), **TEST_SETTINGS}
    assert len(sessions()) >= 10
    with started(BrokerProcess(barnabas_command, tmp_path / "data", given)) as broker:
        async with story(broker):
            for command, expected in sessions():
                line = command.replace("127.0.0.1:8080", f"127.0.0.1:{port}")
                done = await asyncio.to_thread(
                    subprocess.run,
                    line,
                    shell=True,
                    cwd=tmp_path,
                    capture_output=True,
                    text=True,
                    check=True,
                )
                assert normal(done.stdout.strip()) == normal(expected), command
