"""The program of docs/dead-letters.md runs unchanged, except for the broker's address."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.clients.broker_process import BrokerProcess
from tests.clients.cluster import Cluster
from tests.clients.java_build import PROJECT
from tests.clients.test_readme import ADDRESS, blocks


@pytest.mark.barnabas
def test_the_program_reads_the_letter_of_the_record_that_it_rejects(own_broker: BrokerProcess) -> None:
    Cluster(own_broker.address).topic(name="jobs")
    (program,) = blocks(PROJECT / "docs" / "dead-letters.md", "python")
    assert ADDRESS in program
    done = subprocess.run(
        [sys.executable, "-u", "-c", program.replace(ADDRESS, own_broker.address)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "b'7' b'not a number'",
        "__dlq.errors.topic jobs",
        "__dlq.errors.partition 0",
        "__dlq.errors.offset 0",
        "__dlq.errors.group jobs",
        "__dlq.errors.delivery.count 1",
        "__dlq.errors.message Offset rejected by client.",
    ]
