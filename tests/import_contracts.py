"""Contracts for import-linter that this project defines itself (pyproject.toml, `contract_types`)."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output
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


class PartsContract(Contract):
    """Modules import only some parts of an external package, except for the modules of one package.

    import-linter itself knows an external package only as a whole.
    """

    type_name = "parts"

    external_package = fields.StringField()
    allowed_parts = fields.SetField(subfield=fields.StringField())
    except_in = fields.StringField()

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Broken by each import of another part, by its line."""
        package, outside = str(self.external_package), f"{self.except_in}."
        allowed = tuple(f"from {part}." for part in self.allowed_parts)  # type: ignore[attr-defined]
        broken = [
            f"{importer}:{detail['line_number']}: {detail['line_contents']}"
            for importer in sorted(graph.find_modules_that_directly_import(package))
            if not importer.startswith(outside)
            for detail in graph.get_import_details(importer=importer, imported=package)
            if not detail["line_contents"].startswith(allowed)
        ]
        return ContractCheck(kept=not broken, metadata={"broken": broken})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """One line for each import."""
        for line in check.metadata["broken"]:
            output.print_error(line)
