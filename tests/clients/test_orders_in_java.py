"""The tests of `examples/orders/java` and of docs/testing.md pass as they are, with the JUnit 5 extension.
The page's class for Spring Boot gives an application its broker.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.clients.broker_process import BrokerProcess
from tests.clients.cluster import Cluster
from tests.clients.installation import installed_barnabas
from tests.clients.java_build import JAVA_PROJECT, PROJECT, java_classpath, require, run_quietly
from tests.clients.polling import eventually
from tests.clients.test_readme import blocks
from tests.clients.worker_programs import description, printed_by, started_program

PAGE = PROJECT / "docs" / "testing.md"
EXAMPLE = PROJECT / "examples" / "orders" / "java"

pytestmark = [pytest.mark.clients, pytest.mark.barnabas]


def maven(project: Path, *arguments: str) -> list[str]:
    return [require("mvn"), "--quiet", "--batch-mode", f"--file={project}", *arguments]


@pytest.fixture(scope="module", autouse=True)
def installed_extension() -> None:
    """The extension in the local Maven repository."""
    run_quietly(maven(PROJECT / "junit", "install"))


@pytest.fixture
def project_of_the_page(tmp_path: Path) -> Path:
    """A project with the page's test and dependency, beside the client and JUnit of the example."""
    pom = (EXAMPLE / "pom.xml").read_text(encoding="utf-8")
    pom = re.sub(r"<systemPropertyVariables>.*</systemPropertyVariables>", "", pom, flags=re.DOTALL)
    (dependency,) = blocks(PAGE, "xml")
    own = re.compile(r"    <dependency>\n      <groupId>barnabas</groupId>.*?</dependency>\n", re.DOTALL)
    pom, replaced_count = own.subn(lambda _: dependency, pom)
    assert replaced_count == 1
    test, _ = blocks(PAGE, "java")
    folder = tmp_path / "src" / "test" / "java"
    folder.mkdir(parents=True)
    (folder / "OrdersTest.java").write_text(test, encoding="utf-8")
    (tmp_path / "pom.xml").write_text(pom, encoding="utf-8")
    return tmp_path


def assert_one_test_passed(project: Path) -> None:
    (report,) = (project / "target" / "surefire-reports").glob("*.xml")
    assert 'tests="1" errors="0" skipped="0" failures="0"' in report.read_text(encoding="utf-8")


def test_the_tests_of_the_example_pass() -> None:
    run_quietly(maven(EXAMPLE, f"-Dbarnabas.command={installed_barnabas()}", "test"))


def test_the_worker_of_the_example_leaves_its_group_on_sigterm(
    own_broker: BrokerProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_quietly(maven(EXAMPLE, "compile"))
    cluster = Cluster(own_broker.address)
    for name in ("orders", "invoices"):
        cluster.topic(name=name)
    cluster.set_group("billing", {"share.auto.offset.reset": "earliest"})
    cluster.produce("orders", ["a 999"])
    classes = EXAMPLE / "target" / "classes"
    command = [require("java"), "-cp", f"{classes}:{java_classpath()}", "orders.Billing", own_broker.address]
    with started_program(command, tmp_path) as worker:
        eventually(lambda: printed_by(tmp_path) != "", awaited="the order is charged")
        worker.terminate()
        assert worker.wait() == 128 + signal.SIGTERM
    assert printed_by(tmp_path) == "charged 999 cents for order a\n"
    assert description(own_broker, "billing", capsys).startswith("billing  (share group, empty,")


def test_the_test_of_the_page_passes(project_of_the_page: Path) -> None:
    run_quietly(maven(project_of_the_page, f"-Dbarnabas.command={installed_barnabas()}", "test"))
    assert_one_test_passed(project_of_the_page)


def test_the_class_for_spring_gives_the_application_the_broker(tmp_path: Path) -> None:
    project = tmp_path / "spring"
    shutil.copytree(JAVA_PROJECT / "spring", project)
    _, base_class = blocks(PAGE, "java")
    source = project / "src" / "test" / "java" / "orders" / "OrdersTest.java"
    source.write_text(f"package orders;\n\n{base_class}", encoding="utf-8")
    run_quietly(maven(project, f"-Dbarnabas.command={installed_barnabas()}", "test"))
    assert_one_test_passed(project)


def test_an_error_names_the_property_of_the_command(project_of_the_page: Path) -> None:
    command = maven(project_of_the_page, "-Dbarnabas.command=.venv/bin/nothing", "test")
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode != 0
    assert "The command .venv/bin/nothing cannot be started." in ended.stdout
    assert "-Dbarnabas.command=$PWD/.venv/bin/barnabas" in ended.stdout
