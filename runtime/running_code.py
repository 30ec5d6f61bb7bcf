"""Which code runs: the modules on the way of a record are compiled, or interpreted from the same files."""

from __future__ import annotations

from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from typing import Final, Literal

_COMPILED_TOGETHER: Final = "barnabas.runtime.completion"
"""One of the modules that are compiled: all of them are, or none."""


def running_code() -> Literal["compiled", "interpreted"]:
    """Looks for the file of a module; loads none."""
    spec = find_spec(_COMPILED_TOGETHER)
    is_compiled = spec is not None and str(spec.origin).endswith(tuple(EXTENSION_SUFFIXES))
    return "compiled" if is_compiled else "interpreted"
