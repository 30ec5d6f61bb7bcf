"""The tests of `examples/orders/java` pass as they are, with the JUnit 5 extension."""

from __future__ import annotations

import pytest

from tests.clients.broker_process import installed_barnabas
from tests.clients.java_build import PROJECT, require, run_quietly


@pytest.mark.clients
@pytest.mark.barnabas
@pytest.mark.timeout(600)
def test_the_tests_of_the_example_pass() -> None:
    maven = [require("mvn"), "--quiet", "--batch-mode"]
    run_quietly([*maven, f"--file={PROJECT / 'junit'}", "install"])
    command = f"-Dbarnabas.command={installed_barnabas()}"
    run_quietly([*maven, f"--file={PROJECT / 'examples' / 'orders' / 'java'}", command, "test"])
