"""The commands of a page that readers run before its programs: lines of code that begin with `barnabas`.

A backslash at the end of a line continues it, as in a shell.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from barnabas.__main__ import main
from tests.clients.broker_process import BrokerProcess

_COMMAND = re.compile(r"^    barnabas (.+)$", re.MULTILINE)


def run_commands(page: Path, broker: BrokerProcess) -> int:
    """Run them one after the other on this broker; returns their number. Each must succeed."""
    commands = _COMMAND.findall(re.sub(r"\\\n\s*", "", page.read_text(encoding="utf-8")))
    for command in commands:
        assert main([*shlex.split(command), "--bootstrap", broker.address]) == 0, command
    return len(commands)
