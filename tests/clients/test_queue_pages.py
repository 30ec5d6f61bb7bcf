"""The programs of the pages for users of other queues run unchanged, except for the broker's address."""

from __future__ import annotations

import re
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition

from barnabas.__main__ import main
from tests.clients.broker_process import BrokerProcess
from tests.clients.cluster import Cluster, confluent_admin
from tests.clients.java_build import PROJECT
from tests.clients.page_commands import run_commands
from tests.clients.polling import eventually
from tests.clients.test_readme import ADDRESS, blocks, running

PAGES = ("from-rabbitmq", "from-sqs", "from-celery", "from-redis-lists")
DONE = [f"done {number}" for number in range(20)]


def run_block(program: str, broker: BrokerProcess) -> None:
    assert ADDRESS in program
    code = program.replace(ADDRESS, broker.address)
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def page(name: str) -> Path:
    return PROJECT / "docs" / f"{name}.md"


def letter_count(broker: BrokerProcess) -> int:
    """The records in the dead letter topic; 0 if there is no such topic."""
    admin = Cluster(broker.address).admin
    if "dlq.jobs" not in admin.list_topics(timeout=20).topics:
        return 0
    end = {TopicPartition("dlq.jobs", 0): confluent_admin.OffsetSpec.latest()}
    (found,) = admin.list_offsets(end).values()
    offset: int = found.result(20).offset
    return offset


@pytest.mark.barnabas
@pytest.mark.parametrize("name", PAGES)
def test_the_workers_of_a_page_share_the_jobs_and_reject_the_impossible_one(
    own_broker: BrokerProcess, tmp_path: Path, name: str
) -> None:
    (make_queue,) = blocks(page("from-other-queues"), "python")
    send, *workers = blocks(page(name), "python")
    assert len(workers) == 2
    run_block(make_queue, own_broker)
    outputs = [tmp_path / "asyncio", tmp_path / "confluent"]

    def done() -> list[str]:
        return [line for output in outputs for line in output.read_text().splitlines()]

    with ExitStack() as programs:
        for worker, output in zip(workers, outputs, strict=True):
            programs.enter_context(running(worker, own_broker, output))
        run_block(send, own_broker)
        eventually(lambda: len(done()) >= len(DONE), awaited="all jobs are done", deadline_seconds=60)
        eventually(lambda: letter_count(own_broker), awaited="the impossible job is a dead letter")
    assert sorted(done()) == sorted(DONE)
    assert letter_count(own_broker) == 1


@pytest.mark.barnabas
def test_the_commands_of_the_overview_make_the_queue_of_its_program(
    own_broker: BrokerProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    overview = page("from-other-queues")
    (make_queue,) = blocks(overview, "python")
    assert run_commands(overview, own_broker) == 2
    capsys.readouterr()
    assert main(["config", "get", "group", "workers", "--bootstrap", own_broker.address]) == 0
    _, *rows = capsys.readouterr().out.splitlines()
    settings = re.findall(r'^    "([\w.]+)": "([\w.]+)",$', make_queue, re.MULTILINE)
    assert len(settings) == 5
    found = [row.split() for row in rows]
    assert sorted((name, value) for name, value, source in found if source == "group") == sorted(settings)


def test_the_overview_leads_to_each_page() -> None:
    text = page("from-other-queues").read_text()
    assert all(f"({name}.md)" in text for name in PAGES)
