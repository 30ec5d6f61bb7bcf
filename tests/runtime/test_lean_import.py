"""The command line loads structlog without rich and greenlet; a program that embeds a broker has it all."""

from __future__ import annotations

import re
import subprocess
import sys


def output_of(program: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    ).stdout.strip()


def test_structlog_is_loaded_without_rich_and_greenlet_which_stay_available() -> None:
    program = """
import sys
from barnabas.runtime.lean_import import import_structlog_without_extras
import_structlog_without_extras()
import barnabas.runtime.logging
loaded = {"rich", "greenlet"} & set(sys.modules)
import greenlet, rich.console
print(loaded, rich.console.Console.__name__, greenlet.greenlet.__name__)
"""
    assert output_of(program) == "set() Console greenlet"


def test_a_program_that_embeds_a_broker_can_format_tracebacks_with_rich() -> None:
    program = """
import sys, barnabas.broker.node.opening, structlog.dev
try:
    1 / 0
except ZeroDivisionError:
    structlog.dev.rich_traceback(sys.stdout, sys.exc_info())
"""
    assert "Traceback (most recent call last)" in re.sub(r"\x1b\[[\d;]*m", "", output_of(program))
