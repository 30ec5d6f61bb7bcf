"""Imports of kio without Hypothesis."""

from __future__ import annotations

import subprocess
import sys


def output_of(program: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    ).stdout.strip()


def test_hypothesis_is_not_imported_after_the_call() -> None:
    program = """
import sys
from barnabas.protocol.lean_import import import_kio_without_hypothesis
import_kio_without_hypothesis()
import barnabas.protocol.codec
print("hypothesis" in sys.modules)
"""
    assert output_of(program) == "False"


def test_hypothesis_can_be_imported_afterwards() -> None:
    program = """
from barnabas.protocol.lean_import import import_kio_without_hypothesis
import_kio_without_hypothesis()
import hypothesis
print(hypothesis.__name__)
"""
    assert output_of(program) == "hypothesis"


def test_a_process_that_uses_hypothesis_keeps_it() -> None:
    program = """
import sys, types
sys.modules["hypothesis"] = types.ModuleType("hypothesis")
from barnabas.protocol.lean_import import import_kio_without_hypothesis
import_kio_without_hypothesis()
print("hypothesis" in sys.modules, "kio" in sys.modules)
"""
    assert output_of(program) == "True False"
