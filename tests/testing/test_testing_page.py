"""The tests in docs/testing.md pass unchanged."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.containers.compose_file import read_yaml

pytest_plugins = ("pytester",)

PROJECT = Path(__file__).resolve().parents[2]
PAGE = PROJECT / "docs" / "testing.md"


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


@pytest.mark.parametrize("number", range(len(blocks("yaml"))))
def test_the_workflows_are_valid(number: int, tmp_path: Path) -> None:
    workflow = tmp_path / "tests.yml"
    workflow.write_text(blocks("yaml")[number], encoding="utf-8")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows"]
    checked = subprocess.run([*command, str(workflow)], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


def commands_of(workflow: str) -> list[str]:
    """The command lines of its steps."""
    steps = read_yaml(workflow)["jobs"]["tests"]["steps"]
    return [step["run"] for step in steps if "run" in step]


def test_the_workflow_installs_parts_of_the_checkout() -> None:
    ran = commands_of(blocks("yaml")[0])
    assert "pip install './barnabas[testing]' -r project/requirements.txt" in ran
    assert "mvn --batch-mode -f barnabas/junit install" in ran
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "testing" in project["optional-dependencies"]
    assert (PROJECT / "junit" / "pom.xml").is_file()


def test_the_workflow_with_containers_has_the_commands_of_their_page() -> None:
    ran = commands_of(blocks("yaml")[1])
    _, section = (
        (PROJECT / "docs" / "containers.md").read_text(encoding="utf-8").split("## In your integration tests")
    )
    shown = re.findall(r"^    (docker .+)$", section.split("\n## ")[0], re.MULTILINE)
    assert len(ran) == 3
    assert set(ran) <= set(shown)
    assert (PROJECT / "docker" / "Dockerfile").is_file()


def test_the_page_names_every_control() -> None:
    routes = (PAGE.parents[1] / "broker" / "testing" / "routes.py").read_text(encoding="utf-8")
    shown = PAGE.read_text(encoding="utf-8")
    for method, steps in re.findall(r'case "([A-Z]+)", \[(.*)\]:', routes):
        path = "/".join(
            step.strip('"') if step.startswith('"') else step.replace("number", "id").upper()
            for step in steps.split(", ")
        )
        assert f"`{method} /testing/v1/{path}`" in shown
