"""The commands and the program of docs/dead-letters.md run unchanged, except for the broker's address."""

from __future__ import annotations

import pytest

from tests.clients.broker_process import BrokerProcess
from tests.clients.java_build import PROJECT
from tests.clients.page_commands import run_commands
from tests.clients.test_readme import blocks, output_of


@pytest.mark.barnabas
def test_the_program_reads_the_letter_of_the_record_that_it_rejects(own_broker: BrokerProcess) -> None:
    page = PROJECT / "docs" / "dead-letters.md"
    assert run_commands(page, own_broker) == 3
    (program,) = blocks(page, "python")
    assert output_of(program, own_broker) == [
        "b'7' b'not a number'",
        "__dlq.errors.topic jobs",
        "__dlq.errors.partition 0",
        "__dlq.errors.offset 0",
        "__dlq.errors.group jobs",
        "__dlq.errors.delivery.count 1",
        "__dlq.errors.message Offset rejected by client.",
    ]
