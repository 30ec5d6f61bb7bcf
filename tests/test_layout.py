"""The layout and the house rules that no other tool checks: links, packages, tests that mirror folders."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.folders import FOLDERS

PROJECT = Path(__file__).resolve().parents[1]


def python_files(*folders: str) -> Iterator[Path]:
    for folder in folders:
        yield from (path for path in sorted((PROJECT / folder).rglob("*.py")))


def pyproject() -> dict[str, Any]:
    return tomllib.loads((PROJECT / "pyproject.toml").read_text())


@pytest.mark.parametrize("folder", FOLDERS)
def test_each_package_is_a_relative_link_that_resolves(folder: str) -> None:
    link = PROJECT / "src" / "barnabas" / folder
    assert link.is_symlink(), "a checkout without links would build an empty wheel"
    assert link.readlink() == Path("../..") / folder
    assert (link / "__init__.py").is_file()


def test_the_type_checker_includes_each_link() -> None:
    included = pyproject()["tool"]["pyright"]["include"]
    assert {f"src/barnabas/{folder}" for folder in FOLDERS} <= set(included)


def test_each_folder_of_code_is_a_package() -> None:
    missing = {
        str(path.parent) for path in python_files(*FOLDERS) if not (path.parent / "__init__.py").is_file()
    }
    assert missing == set()


def test_no_product_code_checks_a_protocol_at_run_time() -> None:
    """`isinstance` with a Protocol looks at each of its methods, which takes as long as a whole decision."""
    checkable = {str(path) for path in python_files(*FOLDERS) if "runtime_checkable" in path.read_text()}
    assert checkable == set()


def test_docker_is_not_a_package() -> None:
    assert not list((PROJECT / "docker").rglob("__init__.py"))


def test_tests_mirror_the_folders() -> None:
    for path in python_files(
        *(f"tests/{folder}" for folder in FOLDERS if (PROJECT / "tests" / folder).is_dir())
    ):
        mirrored = PROJECT / path.relative_to(PROJECT / "tests")
        assert mirrored.parent.is_dir(), f"{path.relative_to(PROJECT)} has no folder to test"
        assert (path.parent / "__init__.py").is_file()


@pytest.mark.parametrize("folder", FOLDERS)
def test_each_file_has_a_docstring(folder: str) -> None:
    silent = [
        str(path.relative_to(PROJECT))
        for path in python_files(folder)
        if path.stat().st_size and not path.read_text().startswith('"""')
    ]
    assert silent == []


def test_names_are_those_of_the_field() -> None:
    banned = re.compile(r"^class \w*(Manager|Helper|Util|Utils|Service)\b", re.MULTILINE)
    found = [
        f"{path.relative_to(PROJECT)}: {match[0]}"
        for path in python_files(*FOLDERS)
        for match in banned.finditer(path.read_text())
    ]
    assert found == []


def test_nothing_is_left_to_do_in_the_code() -> None:
    marker = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|X" + r"XX)\b")
    found = [
        str(path.relative_to(PROJECT))
        for path in python_files(*FOLDERS, "tests", "benchmarks", "docker", "release")
        if marker.search(path.read_text())
    ]
    assert found == []
