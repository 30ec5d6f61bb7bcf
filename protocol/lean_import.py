"""Keeps Hypothesis out of a broker's process.

kio registers property-test strategies for its integer types whenever Hypothesis is installed, and importing
that takes longer than all else that a broker does until its port is open.
"""

from __future__ import annotations

import sys
from importlib import import_module


def import_kio_without_hypothesis() -> None:
    """Loads kio's primitive types while `hypothesis` cannot be found.

    To be called by a command line before anything else of this package is imported: kio looks for
    Hypothesis once only, when the first of its modules is loaded. In a process that already uses
    Hypothesis (a test run) nothing is done, and afterwards it can be imported as ever.
    """
    if "hypothesis" in sys.modules:
        return
    sys.modules["hypothesis"] = None  # type: ignore[assignment]
    try:
        import_module("kio.static.primitive")
    finally:
        del sys.modules["hypothesis"]
