"""Contracts for import-linter that this project defines itself (pyproject.toml, `contract_types`)."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from importlinter.contracts.forbidden import ForbiddenContract

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "barnabas"


class PureContract(ForbiddenContract):
    """Modules that call themselves pure import no I/O, no clock, no randomness and no event loop.

    A module is pure if its docstring contains the word "Pure"; a package's docstring stands for its modules.
    """

    type_name = "pure"

    def __init__(self, name: str, session_options: dict[str, Any], contract_options: dict[str, Any]) -> None:
        options = {**contract_options, "source_modules": sorted(pure_modules())}
        super().__init__(name, session_options, options)


def pure_modules() -> Iterator[str]:
    """The dotted names of all pure modules and packages."""
    for folder in sorted(PACKAGE.iterdir()):
        for path in sorted(folder.glob("**/*.py")) if folder.is_dir() else ():
            if "Pure" in (ast.get_docstring(ast.parse(path.read_text())) or ""):
                parts = path.relative_to(PACKAGE).with_suffix("").parts
                yield ".".join(["barnabas", *(part for part in parts if part != "__init__")])
