"""Each artefact installs into an empty environment, brings few other distributions, and works there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from release.artefacts import Artefacts
from tests.release.dependencies import CONSOLE_LIBRARIES, DEPENDENCIES
from tests.release.environments import install, installed_pythons, round_trip, run, serving

pytestmark = pytest.mark.release

_OTHER_RUNTIMES = ("*.jar", "*.class", "bin/node", "node_modules", "bin/java", "jvm")


@pytest.mark.parametrize(
    ("kind", "is_native", "code"),
    [
        ("sdist", True, "interpreted"),
        ("native_wheel", True, "compiled"),
        ("pure_wheel", False, "interpreted"),
    ],
)
def test_an_installed_artefact_serves_a_share_consumer(
    artefacts: Artefacts, tmp_path: Path, kind: str, is_native: bool, code: str
) -> None:
    environment = install(getattr(artefacts, kind), tmp_path / "environment")
    with serving(environment.barnabas, tmp_path / "data") as broker:
        facts = round_trip(environment.python, broker)
    assert Path(facts["package"]).is_relative_to(tmp_path), "the checkout was used, not the artefact"
    assert facts["native"] == str(is_native)
    assert facts["code"] == code


@pytest.mark.parametrize("python", installed_pythons(), ids=lambda path: path.name)
def test_the_pure_wheel_works_with_each_python(artefacts: Artefacts, tmp_path: Path, python: Path) -> None:
    environment = install(artefacts.pure_wheel, tmp_path / "environment", python)
    with serving(environment.barnabas, tmp_path / "data") as broker:
        assert round_trip(environment.python, broker)["native"] == "False"


def test_an_install_brings_no_jvm_no_spark_and_no_node(artefacts: Artefacts, tmp_path: Path) -> None:
    environment = install(artefacts.native_wheel, tmp_path / "environment")
    assert environment.distributions() == {"barnabas", *DEPENDENCIES}
    found = [path for pattern in _OTHER_RUNTIMES for path in environment.folder.rglob(pattern)]
    assert found == []
    run(environment.python, "-c", "import barnabas.client, barnabas.broker.node.broker")


def test_the_bill_of_materials_lists_the_installed_distributions_and_the_libraries_of_the_console(
    artefacts: Artefacts,
) -> None:
    (path,) = artefacts.sdist.parent.glob("*.cdx.json")
    bill = json.loads(path.read_text())
    assert bill["bomFormat"] == "CycloneDX"
    listed = {component["name"].lower().replace("_", "-") for component in bill["components"]}
    assert listed - {"barnabas"} == DEPENDENCIES | CONSOLE_LIBRARIES
    assert all(component.get("licenses") for component in bill["components"])
