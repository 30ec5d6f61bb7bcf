"""No `Any` crosses a folder boundary: the signatures that modules of other folders see have none.

The exception is PyArrow, which has no type information: the values of its columns are `Any`.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.folders import FOLDERS

PROJECT = Path(__file__).resolve().parents[1]
UNTYPED = {
    "barnabas.pipeline.columnar.Array",
    "barnabas.pipeline.columnar.RecordBatch",
    "barnabas.pipeline.decoding.arrow.pa",
}
"""The interface of PyArrow."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def modules() -> dict[Path, ast.Module]:
    return {
        path: ast.parse(path.read_text())
        for folder in FOLDERS
        for path in sorted((PROJECT / folder).rglob("*.py"))
    }


def module_name(path: Path) -> str:
    return ".".join(("barnabas", *path.relative_to(PROJECT).with_suffix("").parts)).removesuffix(".__init__")


def importing_folders(parsed: dict[Path, ast.Module]) -> dict[str, set[Path]]:
    """The folders whose modules import a name, by the name with its module."""
    found: dict[str, set[Path]] = defaultdict(set)
    for path, tree in parsed.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    found[f"{node.module}.{alias.name}"].add(path.parent)
    return found


def has_any(node: ast.AST | None) -> bool:
    return node is not None and any(isinstance(one, ast.Name) and one.id == "Any" for one in ast.walk(node))


def signature_has_any(function: Function) -> bool:
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    packed = [one for one in (arguments.vararg, arguments.kwarg) if one is not None]
    return any(has_any(one.annotation) for one in (*named, *packed)) or has_any(function.returns)


def public_members(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The members of a class that others use. The overloads of a method replace its own signature."""
    functions = [one for one in body if isinstance(one, Function)]
    overloaded = {
        one.name for one in functions if any(has_name(mark, "overload") for mark in one.decorator_list)
    }
    for one in functions:
        is_public = not one.name.startswith("_") or one.name == "__init__"
        if is_public and one.name not in overloaded:
            yield one
    for field in body:
        if isinstance(field, ast.AnnAssign) and not ast.unparse(field.target).startswith("_"):
            yield field


def has_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def shows_any(definition: ast.stmt) -> bool:
    """Whether users of a function, a class, a field or an alias meet `Any`."""
    if isinstance(definition, Function):
        return signature_has_any(definition)
    if isinstance(definition, ast.ClassDef):
        return any(shows_any(one) for one in public_members(definition.body))
    if isinstance(definition, ast.AnnAssign):
        return has_any(definition.annotation) or has_any(definition.value)
    return isinstance(definition, ast.Assign) and has_any(definition.value)


def defined_names(definition: ast.stmt) -> list[str]:
    if isinstance(definition, Function | ast.ClassDef):
        return [definition.name]
    if isinstance(definition, ast.Assign | ast.AnnAssign):
        targets = definition.targets if isinstance(definition, ast.Assign) else [definition.target]
        return [one.id for one in targets if isinstance(one, ast.Name)]
    return []


def test_no_any_crosses_a_folder_boundary() -> None:
    parsed = modules()
    importers = importing_folders(parsed)
    found = {
        f"{module_name(path)}.{name}"
        for path, tree in parsed.items()
        for definition in tree.body
        if shows_any(definition)
        for name in defined_names(definition)
        if importers[f"{module_name(path)}.{name}"] - {path.parent}
    }
    assert found == UNTYPED
