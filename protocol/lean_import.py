"""Keeps Hypothesis out of a broker's process.

kio registers property-test strategies for its integer types if Hypothesis is installed, and importing
Hypothesis takes longer than everything else before a broker's port is open.
"""

from __future__ import annotations

import sys
from importlib import import_module


def import_kio_without_hypothesis() -> None:
    """Loads kio's primitive types while `hypothesis` cannot be found.

    A command line calls it before it imports anything else of this package, because kio looks for Hypothesis
    only once, when its first module is loaded. It does nothing in a process that already uses Hypothesis (a
    test run). Afterwards Hypothesis can be imported as usual.
    """
    import_without("hypothesis", "kio.static.primitive")


def import_without(optional: str, module: str) -> None:
    """Loads `module` as if `optional`, a package that it uses if there is one, was not installed.

    Does nothing in a process that has loaded `optional`.
    """
    if optional in sys.modules:
        return
    sys.modules[optional] = None  # type: ignore[assignment]  # None makes an import fail
    try:
        import_module(module)
    finally:
        del sys.modules[optional]
