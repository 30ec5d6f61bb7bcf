"""Options and markers of the whole test suite."""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("barnabas")
    group.addoption(
        "--broker",
        metavar="HOST:PORT",
        help="Run tests/clients against this running broker; tests that start or kill one are deselected.",
    )
    group.addoption(
        "--barnabas",
        metavar="PATH",
        help="The barnabas command to test, instead of the one installed beside this Python.",
    )
    group.addoption(
        "--matrix-repeats",
        type=int,
        metavar="N",
        help="Run each row of the failure matrix N times, and what is too long for every day. Without: once.",
    )
    group.addoption(
        "--clients",
        action="store_true",
        help="Run what takes every client and every tool, and an Apache Kafka beside the broker.",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "barnabas: starts, kills or abuses a broker process of its own")
    config.addinivalue_line("markers", "matrix: a row of the failure matrix, run as often as is asked for")
    config.addinivalue_line(
        "markers", "clients: takes more clients than every day's tests; runs with --clients"
    )
    config.addinivalue_line("markers", "long: takes too long for every day; runs with --matrix-repeats")
    # kafka-python reads its own resources in a way that Python 3.11 deprecates and 3.13 allows again.
    config.addinivalue_line("filterwarnings", "ignore:(read|open)_text is deprecated:DeprecationWarning")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out: list[pytest.Item] = []
    if config.getoption("--matrix-repeats") is None:
        left_out += [item for item in items if item.get_closest_marker("long")]
    if not config.getoption("--clients"):
        left_out += [item for item in items if item.get_closest_marker("clients")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_worker_of(item.path)))


def _worker_of(path: Path) -> str:
    """Two processes share the tests: one has Spark, with the only session of the run, the other the rest."""
    return "pipeline" if (TESTS / "pipeline") in path.parents else "broker"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    repeats = metafunc.config.getoption("--matrix-repeats")
    if repeats is not None and metafunc.definition.get_closest_marker("matrix"):
        metafunc.fixturenames.append("matrix_run")
        metafunc.parametrize("matrix_run", range(1, repeats + 1))
