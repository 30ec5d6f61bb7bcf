"""The tests in docs/testing.md pass unchanged."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest_plugins = ("pytester",)

PAGE = Path(__file__).resolve().parents[2] / "docs" / "testing.md"


def blocks(language: str) -> list[str]:
    text = PAGE.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def test_the_tests_on_the_page_pass(pytester: pytest.Pytester) -> None:
    tests = blocks("python")
    (configuration,) = blocks("ini")
    pytester.makepyfile(**{f"test_block_{number}": block for number, block in enumerate(tests)})
    pytester.makefile(".ini", pytest=configuration)
    result = pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider", "-p", "no:xdist")
    result.assert_outcomes(passed=sum(len(re.findall(r"\bdef test_", block)) for block in tests))


def test_the_page_names_every_control() -> None:
    routes = (PAGE.parents[1] / "broker" / "testing" / "routes.py").read_text(encoding="utf-8")
    shown = PAGE.read_text(encoding="utf-8")
    for method, steps in re.findall(r'case "([A-Z]+)", \[(.*)\]:', routes):
        path = "/".join(
            step.strip('"') if step.startswith('"') else step.replace("number", "id").upper()
            for step in steps.split(", ")
        )
        assert f"`{method} /testing/v1/{path}`" in shown
