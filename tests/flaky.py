"""Tests that are run once more if they fail: a plugin of pytest, and the check of their list.

A test with real processes may carry `@pytest.mark.flaky` of pytest-rerunfailures while the cause of a failure
is looked for. A run in which it passes the second time passes, names it at the end, and records it in
.cache/flaky.txt. A run with three such tests fails. flaky.txt beside this file lists all tests with the mark;
`python -m tests.flaky` compares it with them, as a part of `make check`.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import pytest_timeout  # type: ignore[import-untyped]

TESTS = Path(__file__).resolve().parent
LIST = TESTS / "flaky.txt"
LISTED_MAX = 20
FLAKY_IN_A_RUN_MAX = 2
FOLDERS = ("cli", "clients", "containers", "pipeline", "release", "testing")
"""The folders whose tests use real processes; those of all others must be deterministic."""

_FLAKY_TESTS = pytest.StashKey[list[str]]()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """The second run of a test gets a limit of its own: pytest-timeout sets one for both together, and its
    timer ends with the first failure.
    """
    settings: Any = pytest_timeout._get_item_settings(item)  # pyright: ignore
    if settings.timeout and getattr(item, "execution_count", 1) > 1:
        item.config.hook.pytest_timeout_set_timer(item=item, settings=settings)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Records the flaky tests of this run; too many of them fail it."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or hasattr(session.config, "workerinput"):
        return  # a process of pytest-xdist: the reports arrive in the process that started it
    failed = {report.nodeid for outcome in ("failed", "error") for report in reporter.getreports(outcome)}
    again = dict.fromkeys(report.nodeid for report in reporter.getreports("rerun"))
    flaky = [nodeid for nodeid in again if nodeid not in failed]
    session.config.stash[_FLAKY_TESTS] = flaky
    if flaky:
        record = session.config.rootpath / ".cache" / "flaky.txt"
        record.parent.mkdir(exist_ok=True)
        with record.open("a", encoding="utf-8") as file:
            file.writelines(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {nodeid}\n" for nodeid in flaky)
    if len(flaky) > FLAKY_IN_A_RUN_MAX and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    flaky = terminalreporter.config.stash.get(_FLAKY_TESTS, None) or []
    if flaky:
        terminalreporter.section("flaky tests: failed, and passed when they ran once more", yellow=True)
        for nodeid in flaky:
            terminalreporter.line(f"FLAKY {nodeid}")
    if len(flaky) > FLAKY_IN_A_RUN_MAX:
        terminalreporter.line(
            f"{len(flaky)} flaky tests, at most {FLAKY_IN_A_RUN_MAX} are allowed: this run fails", red=True
        )


def problems(tests: Path = TESTS, flaky_list: Path = LIST) -> Iterator[str]:
    """What is wrong with the list and the marks of these tests, a sentence each."""
    entries = [line.split(maxsplit=1) for line in flaky_list.read_text(encoding="utf-8").splitlines()]
    reasons = {name: rest for name, *rest in filter(None, entries) if not name.startswith("#")}
    marked = [name for file in sorted(tests.rglob("*.py")) for name in _marked(tests, file)]
    for name in sorted(reasons.keys() - set(marked)):
        yield f"{name} is in {flaky_list.name}, but is no test with the mark `flaky`"
    for name in marked:
        if not reasons.get(name):
            yield f"{name} has the mark `flaky`, but {flaky_list.name} has no reason for it"
        if not name.startswith(tuple(f"{tests.name}/{folder}/" for folder in FOLDERS)):
            yield f"{name} has the mark `flaky`, but uses no real processes: it must be deterministic"
    if len(marked) > LISTED_MAX:
        yield f"{len(marked)} tests have the mark `flaky`; at most {LISTED_MAX} may"


def _marked(tests: Path, file: Path) -> Iterator[str]:
    """The functions with the mark. A mark in another place, or with arguments, is named by its line."""
    text = file.read_text(encoding="utf-8")
    if "mark.flaky" not in text:
        return
    path = file.relative_to(tests.parent).as_posix()
    tree = ast.parse(text)
    decorators = {
        id(decorator): node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for decorator in node.decorator_list
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node).endswith("mark.flaky"):
            yield f"{path}::{decorators.get(id(node), f'line {node.lineno}')}"


if __name__ == "__main__":
    sys.exit("\n".join(problems()) or 0)
