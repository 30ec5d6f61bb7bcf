"""Imports of kio without Hypothesis, and of crc32c without the metadata of packages."""

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


def test_crc32c_is_loaded_without_the_metadata_of_packages_which_stay_available() -> None:
    program = """
import sys
from barnabas.protocol.lean_import import import_crc32c_without_metadata
import_crc32c_without_metadata()
import crc32c
loaded = "importlib.metadata" in sys.modules
from importlib.metadata import version
print(loaded, hex(crc32c.crc32c(b"123456789")), version("crc32c") > "2")
"""
    assert output_of(program) == "False 0xe3069283 True"


def test_a_process_that_uses_the_metadata_of_packages_keeps_them() -> None:
    program = """
import importlib.metadata
from barnabas.protocol.lean_import import import_crc32c_without_metadata
import_crc32c_without_metadata()
import crc32c
print(crc32c.__version__ == importlib.metadata.version("crc32c"))
"""
    assert output_of(program) == "True"
