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
from tests.clients.polling import SECONDS_MAX, eventually
from tests.clients.test_readme import ADDRESS, blocks, running

PAGES = ("from-rabbitmq", "from-sqs", "from-celery", "from-redis-lists")
OVERVIEW = "from-other-queues"
DONE = [f"done {number}" for number in range(20)]


def run_block(program: str, broker: BrokerProcess) -> None:
    assert ADDRESS in program
    code = program.replace(ADDRESS, broker.address)
    subprocess.run([sys.executable, "-c", code], check=True)


def page(name: str) -> Path:
    return PROJECT / "docs" / f"{name}.md"


def topic_of(name: str) -> str:
    """The topic that the commands of a page create."""
    (topic,) = re.findall(r"^    barnabas topics create (\S+)", page(name).read_text(), re.MULTILINE)
    return str(topic)


def group_of(name: str) -> str:
    """The group that the commands of a page configure."""
    (group,) = re.findall(r"^    barnabas config set group (\S+)", page(name).read_text(), re.MULTILINE)
    return str(group)


def settings_of(group: str, broker: BrokerProcess, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """The settings that the group itself has."""
    capsys.readouterr()
    assert main(["config", "get", "group", group, "--bootstrap", broker.address]) == 0
    _, *rows = capsys.readouterr().out.splitlines()
    found = [row.split() for row in rows]
    return {key: value for key, value, source in found if source == "group"}


def letter_count(broker: BrokerProcess, topic: str) -> int:
    """The dead letters of a topic; 0 if there is no topic for them."""
    admin = Cluster(broker.address).admin
    letters = f"dlq.{topic}"
    if letters not in admin.list_topics(timeout=SECONDS_MAX).topics:
        return 0
    end = {TopicPartition(letters, 0): confluent_admin.OffsetSpec.latest()}
    (found,) = admin.list_offsets(end).values()
    offset: int = found.result().offset
    return offset


@pytest.mark.barnabas
@pytest.mark.parametrize("name", PAGES)
def test_the_workers_of_a_page_share_the_jobs_and_reject_the_impossible_one(
    own_broker: BrokerProcess, tmp_path: Path, name: str
) -> None:
    send, *workers = blocks(page(name), "python")
    assert len(workers) == 2
    assert run_commands(page(name), own_broker) == 2
    topic = topic_of(name)
    outputs = [tmp_path / "asyncio", tmp_path / "confluent"]

    def done() -> list[str]:
        return [line for output in outputs for line in output.read_text().splitlines()]

    with ExitStack() as programs:
        for worker, output in zip(workers, outputs, strict=True):
            programs.enter_context(running(worker, own_broker, output))
        run_block(send, own_broker)
        eventually(lambda: len(done()) >= len(DONE), awaited="all jobs are done")
        eventually(lambda: letter_count(own_broker, topic), awaited="the impossible job is a dead letter")
    assert sorted(done()) == sorted(DONE)
    assert letter_count(own_broker, topic) == 1


@pytest.mark.barnabas
def test_the_commands_of_each_page_make_a_queue_like_that_of_the_overview_s_program(
    own_broker: BrokerProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    (make_queue,) = blocks(page(OVERVIEW), "python")
    run_block(make_queue, own_broker)
    expected = settings_of(group_of(OVERVIEW), own_broker, capsys)
    assert len(expected) == 5
    topic, admin = topic_of(OVERVIEW), Cluster(own_broker.address).admin
    admin.delete_topics([topic])[topic].result()
    for name in (OVERVIEW, *PAGES):
        assert run_commands(page(name), own_broker) == 2
        letters = {"errors.deadletterqueue.topic.name": f"dlq.{topic_of(name)}"}
        assert settings_of(group_of(name), own_broker, capsys) == {**expected, **letters}


def test_no_page_uses_a_topic_or_a_group_of_another_one_or_of_the_five_minute_start() -> None:
    pages = [OVERVIEW, *PAGES]
    assert len({"orders", *map(topic_of, pages)}) == len(pages) + 1
    assert len({"workers", *map(group_of, pages)}) == len(pages) + 1
    for name in PAGES:
        text = page(name).read_text()
        assert set(re.findall(r'group(?:\.id)?"?[=:] ?"([\w-]+)"', text)) == {group_of(name)}
        assert set(re.findall(r'(?:topics=|subscribe\()\["([\w-]+)"\]', text)) == {topic_of(name)}
