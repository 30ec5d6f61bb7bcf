"""Makes docs/reference/errors.md from the error codes that the broker's code uses."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from barnabas.protocol.errors import ErrorCode
from tests.reference.error_causes import CAUSES
from tests.reference.markdown import table

PROJECT: Final = Path(__file__).parents[2]
_SERVING: Final = ("broker", "coordinator", "protocol", "share", "storage")
_TRANSLATING: Final = (PROJECT / "broker" / "http", PROJECT / "protocol" / "client")
"""Folders that read codes: into the statuses of HTTP, and as a client."""

_HEAD: Final = """\
# All errors

This page lists the error codes with which the broker answers, with Kafka's numbers and names. It is made from
the code (`python -m tests.reference`). Clients have their own exceptions for these codes; those of the
asyncio client are in [its page](../asyncio-client.md#errors).

"Retries" tells whether clients try again by themselves. Most answers that have a field for it also have a
message with the exact reason.
"""


def rendered() -> str:
    """The page."""
    rows = (
        (str(code.value), code.name.upper(), "yes" if code.retriable else "no", CAUSES[code.name])
        for code in sorted(used_codes(), key=lambda code: code.value)
    )
    return "\n".join([_HEAD, *table(("code", "error", "retries", "cause, and remedy"), rows)]) + "\n"


def used_codes() -> set[ErrorCode]:
    """The codes that the broker's code names, except `none`, which is success."""
    names = {
        node.attr
        for folder in _SERVING
        for path in (PROJECT / folder).rglob("*.py")
        if not any(path.is_relative_to(folder) for folder in _TRANSLATING)
        for node in _attributes(path)
    }
    return {ErrorCode[name] for name in names & ErrorCode.__members__.keys()} - {ErrorCode.none}


def _attributes(path: Path) -> Iterator[ast.Attribute]:
    """`ErrorCode.name` everywhere in a file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "ErrorCode"
        ):
            yield node
