"""The commands in docs/dead-letters-redrive.md print the output that the page shows."""

from __future__ import annotations

import re
import shlex

import pytest

from barnabas.__main__ import main
from tests.clients.broker_process import BrokerProcess
from tests.clients.cluster import Cluster
from tests.clients.java_build import PROJECT
from tests.clients.letters import EXCEEDED, LetterBox, Written
from tests.clients.test_redrive import delete_records

PAGE = PROJECT / "docs" / "dead-letters-redrive.md"
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def commands() -> list[tuple[str, str]]:
    """The commands of the page and their output."""
    blocks = re.findall(r"^    \$ (barnabas .*)\n((?:^    (?!\$).*\n)*)", PAGE.read_text(), re.MULTILINE)
    return [(command, re.sub(r"^    ", "", output, flags=re.MULTILINE)) for command, output in blocks]


def orders_with_letters(address: str) -> None:
    """Four orders that have letters; the first one is deleted."""
    cluster = Cluster(address)
    box = LetterBox(address, source=cluster.topic(name="orders"), dlq=cluster.topic(name="dlq.orders"))
    cluster.topic(name="orders.retry")
    orders = [
        Written(b"c-%d" % number, b'{"id": %d}' % number, [("trace", b"t%d" % number)])
        for number in (1, 2, 3)
    ]
    box.add(*orders[:2])
    box.add(*orders[2:], reason=EXCEEDED)
    delete_records(cluster, "orders", before=1)


@pytest.mark.barnabas
def test_the_commands_print_the_output_of_the_page(
    own_broker: BrokerProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    orders_with_letters(own_broker.address)
    shown = commands()
    assert len(shown) == 5
    for command, output in shown:
        _, *arguments = shlex.split(command)
        main([*arguments, "--bootstrap", own_broker.address])
        printed = capsys.readouterr()
        assert printed.err == ""
        assert _TIME.sub("TIME", printed.out) == _TIME.sub("TIME", output), command
