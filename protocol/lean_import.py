"""Keeps Hypothesis and the metadata of installed packages out of a broker's process.

kio registers property-test strategies for its integer types if Hypothesis is installed, and importing
Hypothesis takes longer than everything else before a broker's port is open. crc32c reads its own version from
the metadata. `importlib.metadata` loads parsers of e-mail and archives for that, which take 1.6 MB and 10 ms,
and nothing in a broker uses the version.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from importlib import import_module
from types import ModuleType
from typing import Final

_METADATA: Final = "importlib.metadata"


def import_kio_without_hypothesis() -> None:
    """Loads kio's primitive types while `hypothesis` cannot be found.

    A command line calls it before it imports anything else of this package, because kio looks for Hypothesis
    only once, when its first module is loaded. It does nothing in a process that already uses Hypothesis (a
    test run). Afterwards Hypothesis can be imported as usual.
    """
    import_without(("hypothesis",), "kio.static.primitive")


def import_crc32c_without_metadata() -> None:
    """Loads crc32c without `importlib.metadata`, which can be imported as usual afterwards.

    A command line calls it before it imports other modules of the broker. `crc32c.__version__` is then empty.
    Does nothing in a process that has loaded the metadata.
    """
    if _METADATA in sys.modules:
        return
    no_metadata = ModuleType(_METADATA)
    no_metadata.version = _no_version  # type: ignore[attr-defined]  # a module can have any attribute
    sys.modules[_METADATA] = no_metadata
    try:
        import_module("crc32c")
    finally:
        del sys.modules[_METADATA]


def _no_version(_: str) -> str:
    return ""


def import_without(optional: Collection[str], module: str) -> None:
    """Loads `module` as if the packages `optional`, which it uses if there are any, were not installed.

    A package that the process has loaded stays. Does nothing if it has loaded all of them.
    """
    hidden = [package for package in optional if package not in sys.modules]
    if not hidden:
        return
    for package in hidden:
        sys.modules[package] = None  # type: ignore[assignment]  # None makes an import fail
    try:
        import_module(module)
    finally:
        for package in hidden:
            del sys.modules[package]
