"""Tests that are run once more if they fail, in small suites, and the check of their list."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.flaky import LISTED_MAX, problems

pytest_plugins = ("pytester",)

PROJECT = Path(__file__).resolve().parents[1]
FLAKY = """
from pathlib import Path
import pytest

@pytest.mark.flaky
@pytest.mark.parametrize("place", range({number}))
def test_flaky(place):
    seen = Path(f"seen-{{place}}")
    if not seen.exists():
        seen.touch()
        raise AssertionError
"""
UNMARKED = """
from pathlib import Path

def test_unmarked():
    seen = Path("seen")
    if not seen.exists():
        seen.touch()
        raise AssertionError
"""
WRONG = """
import pytest

@pytest.mark.flaky
def test_wrong():
    raise AssertionError
"""
HANGING = """
import threading
import pytest

@pytest.mark.flaky
def test_hanging():
    threading.Event().wait()
"""
IN_PROCESSES = ("-p", "xdist", "--numprocesses", "2", "--dist", "loadscope")


def run(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, suite: str, *options: str
) -> pytest.RunResult:
    monkeypatch.setenv("PYTHONPATH", str(PROJECT))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(test_x=suite)
    return pytester.runpytest_subprocess(
        *("-p", "pytest_rerunfailures", "-p", "pytest_timeout", "-p", "tests.flaky"), *options
    )


def outcomes(result: pytest.RunResult) -> dict[str, int]:
    return {name: count for name, count in result.parseoutcomes().items() if name != "warnings"}


@pytest.mark.parametrize("options", [(), IN_PROCESSES], ids=["one process", "processes of xdist"])
def test_a_marked_test_that_passes_the_second_time_is_named_and_recorded(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    result = run(pytester, monkeypatch, FLAKY.format(number=2), *options)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["FLAKY test_x.py::test_flaky[[]0]", "FLAKY test_x.py::test_flaky[[]1]"])
    assert outcomes(result) == {"passed": 2, "rerun": 2}
    recorded = (pytester.path / ".cache" / "flaky.txt").read_text().splitlines()
    assert [line.split()[1] for line in recorded] == ["test_x.py::test_flaky[0]", "test_x.py::test_flaky[1]"]


@pytest.mark.parametrize("options", [(), IN_PROCESSES], ids=["one process", "processes of xdist"])
def test_three_flaky_tests_fail_a_run(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    result = run(pytester, monkeypatch, FLAKY.format(number=3), *options)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["3 flaky tests, at most 2 are allowed: this run fails"])
    assert outcomes(result) == {"passed": 3, "rerun": 3}


def test_a_marked_test_that_fails_twice_fails_the_run(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = run(pytester, monkeypatch, WRONG)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert outcomes(result) == {"failed": 1, "rerun": 1}
    assert "FLAKY" not in result.stdout.str()
    assert not (pytester.path / ".cache").exists()


def test_a_test_without_the_mark_is_run_once(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = run(pytester, monkeypatch, UNMARKED)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert outcomes(result) == {"failed": 1}


def test_the_limit_of_a_test_ends_its_second_run_too(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = run(pytester, monkeypatch, HANGING, "--timeout", "0.5")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert outcomes(result) == {"failed": 1, "rerun": 1}


def found(folder: Path, listed: str, **suites: str) -> list[str]:
    """The problems of a list and of suites, which are files in these folders of tests."""
    tests = folder / "tests"
    for name, suite in suites.items():
        (tests / name).mkdir(parents=True)
        (tests / name / "test_x.py").write_text(suite)
    (tests / "flaky.txt").write_text(listed)
    return list(problems(tests, tests / "flaky.txt"))


def test_the_list_and_the_marks_agree(tmp_path: Path) -> None:
    listed = "# Why\n\ntests/clients/test_x.py::test_wrong  It waits for a port.\n"
    assert found(tmp_path, listed, clients=WRONG, share=UNMARKED) == []


def test_a_marked_test_without_a_reason_is_a_problem(tmp_path: Path) -> None:
    name = "tests/clients/test_x.py::test_wrong"
    assert found(tmp_path, name, clients=WRONG) == [
        f"{name} has the mark `flaky`, but flaky.txt has no reason for it"
    ]


def test_a_listed_test_without_the_mark_is_a_problem(tmp_path: Path) -> None:
    name = "tests/clients/test_x.py::test_unmarked"
    assert found(tmp_path, f"{name} It is slow.", clients=UNMARKED) == [
        f"{name} is in flaky.txt, but is no test with the mark `flaky`"
    ]


@pytest.mark.parametrize("folder", ["simulation", "share", "protocol"])
def test_a_test_without_real_processes_must_not_have_the_mark(tmp_path: Path, folder: str) -> None:
    name = f"tests/{folder}/test_x.py::test_wrong"
    assert found(tmp_path, f"{name} It is slow.", **{folder: WRONG}) == [
        f"{name} has the mark `flaky`, but uses no real processes: it must be deterministic"
    ]


@pytest.mark.parametrize(
    "suite", ["pytestmark = pytest.mark.flaky", WRONG.replace("flaky", "flaky(reruns=5)")]
)
def test_only_the_bare_mark_of_one_function_counts(tmp_path: Path, suite: str) -> None:
    (problem,) = found(tmp_path, "", clients=suite)
    assert problem.startswith("tests/clients/test_x.py::line ")


def test_at_most_20_tests_have_the_mark(tmp_path: Path) -> None:
    names = [f"test_{number}" for number in range(LISTED_MAX + 1)]
    suite = "".join(WRONG.replace("test_wrong", name) for name in names)
    listed = "".join(f"tests/clients/test_x.py::{name} It is slow.\n" for name in names)
    assert found(tmp_path, listed, clients=suite) == ["21 tests have the mark `flaky`; at most 20 may"]
