"""The program of docs/dead-letters.md runs unchanged, except for the broker's address."""

from __future__ import annotations

import pytest

from tests.clients.broker_process import BrokerProcess
from tests.clients.cluster import Cluster
from tests.clients.java_build import PROJECT
from tests.clients.test_readme import blocks, output_of


@pytest.mark.barnabas
def test_the_program_reads_the_letter_of_the_record_that_it_rejects(own_broker: BrokerProcess) -> None:
    Cluster(own_broker.address).topic(name="jobs")
    (program,) = blocks(PROJECT / "docs" / "dead-letters.md", "python")
    assert output_of(program, own_broker) == [
        "b'7' b'not a number'",
        "__dlq.errors.topic jobs",
        "__dlq.errors.partition 0",
        "__dlq.errors.offset 0",
        "__dlq.errors.group jobs",
        "__dlq.errors.delivery.count 1",
        "__dlq.errors.message Offset rejected by client.",
    ]
