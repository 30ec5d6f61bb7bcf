"""The programs of the pages that handle SIGTERM end without an error, and their consumers leave the group."""

from __future__ import annotations

import json
import re
import signal
import sys
from pathlib import Path

import pytest

from tests.clients.broker_process import BrokerProcess
from tests.clients.cluster import Cluster
from tests.clients.java_build import PROJECT, java_classpath, require
from tests.clients.page_commands import run_commands
from tests.clients.polling import eventually
from tests.clients.test_readme import ADDRESS, blocks
from tests.clients.worker_programs import description, errors_of, printed_by, started_program

PAGES = ("asyncio-client", "getting-started", "from-rabbitmq", "from-sqs", "from-celery", "from-redis-lists")
PROGRAMS = [
    pytest.param(page, program, id=f"{page}-{number}")
    for page in PAGES
    for number, program in enumerate(blocks(PROJECT / "docs" / f"{page}.md", "python"))
    if "SIGTERM" in program and "transactional_id" not in program
]
COPIERS = [
    pytest.param(page, program, id=f"{page}-{number}")
    for page in ("asyncio-client", "asyncio-producer")
    for number, program in enumerate(blocks(PROJECT / "docs" / f"{page}.md", "python"))
    if "transactional_id" in program
]
READERS = [
    pytest.param(program, id=f"asyncio-consumer-{number}")
    for number, program in enumerate(blocks(PROJECT / "docs" / "asyncio-consumer.md", "python"))
    if "SIGTERM" in program
]
JOB = json.dumps({"number": 7, "task": "resize", "arguments": [7, "7.png"]})
"""The pages for other queues find the fields of their own jobs in it, except the page with plain numbers."""


def test_the_consumers_of_all_pages_handle_the_signal() -> None:
    pages = [one.values[0] for one in PROGRAMS]
    assert [pages.count(page) for page in PAGES] == [1, 2, 2, 2, 2, 2]
    assert (len(COPIERS), len(READERS)) == (3, 2)


@pytest.mark.barnabas
@pytest.mark.clients
@pytest.mark.parametrize(("page", "program"), PROGRAMS)
def test_a_worker_closes_its_consumer_on_sigterm(
    own_broker: BrokerProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str], page: str, program: str
) -> None:
    topic, group = _names(program)
    _prepare(own_broker, topic, group, "7" if page == "from-redis-lists" else JOB)
    _terminate_when_printed(program, own_broker, tmp_path, "7")
    assert description(own_broker, group, capsys).startswith(f"{group}  (share group, empty,")


@pytest.mark.barnabas
@pytest.mark.clients
@pytest.mark.parametrize(("page", "program"), COPIERS)
def test_a_copier_closes_its_consumer_on_sigterm(
    own_broker: BrokerProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str], page: str, program: str
) -> None:
    topic, group = _names(program)
    _prepare(own_broker, topic, group, JOB)
    run_commands(PROJECT / "docs" / f"{page}.md", own_broker)
    _terminate_when_printed(program, own_broker, tmp_path, "1 records copied")
    assert " group, empty" in description(own_broker, group, capsys).splitlines()[0]


@pytest.mark.barnabas
@pytest.mark.clients
@pytest.mark.parametrize("program", READERS)
def test_a_reader_commits_and_closes_its_consumer_on_sigterm(
    own_broker: BrokerProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str], program: str
) -> None:
    topic, group = _names(program)
    _prepare(own_broker, topic, group, JOB)
    _terminate_when_printed(program, own_broker, tmp_path, JOB)
    described = description(own_broker, group, capsys).splitlines()
    assert " group, empty" in described[0]
    assert described[2].split()[:5] == [topic, "0", "1", "1", "0"], "the record is committed"


@pytest.mark.barnabas
@pytest.mark.clients
def test_the_java_worker_closes_its_consumer_on_sigterm(
    own_broker: BrokerProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (program,) = blocks(PROJECT / "docs" / "getting-started.md", "java")
    _prepare(own_broker, "orders", "workers", JOB)
    source = tmp_path / "Workers.java"
    source.write_text(program.replace(ADDRESS, own_broker.address))
    command = [require("java"), "-cp", java_classpath(), str(source)]
    with started_program(command, tmp_path) as worker:
        eventually(lambda: JOB in printed_by(tmp_path), awaited="the job is done")
        worker.terminate()
        assert worker.wait() == 128 + signal.SIGTERM, errors_of(tmp_path)
    assert description(own_broker, "workers", capsys).startswith("workers  (share group, empty,")


@pytest.mark.barnabas
@pytest.mark.clients
def test_a_handler_that_runs_finishes_its_work_on_sigterm(
    own_broker: BrokerProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (program,) = (one.values[1] for one in PROGRAMS if one.values[0] == "asyncio-client")
    slow = 'print("begun", flush=True)\n    await asyncio.sleep(2)\n    print("done")'
    assert isinstance(program, str)
    slow_program, count = re.subn(r"(?<=    )print\(record.*\)", slow, program)
    assert count == 1
    topic, group = _names(program)
    _prepare(own_broker, topic, group, JOB)
    _terminate_when_printed(slow_program, own_broker, tmp_path, "begun")
    assert printed_by(tmp_path).split() == ["begun", "done"]
    assert description(own_broker, group, capsys).splitlines()[2].split() == [topic, "0", "1", "1", "0", "-"]


@pytest.mark.barnabas
@pytest.mark.clients
def test_a_consumer_that_accepts_with_each_poll_accepts_those_of_the_last_one_on_sigterm(
    own_broker: BrokerProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (program,) = (program for program in blocks(PROJECT / "README.md", "python") if "SIGTERM" in program)
    slow_program, count = re.subn(r"( +)print\(message.*\)", r"\g<0>\n\1stopping.wait(1)", program)
    assert count == 1
    topic, group = _names(program)
    _prepare(own_broker, topic, group, *(str(number) for number in range(4)))
    _terminate_when_printed(slow_program, own_broker, tmp_path, "b'0'")
    assert [line.split()[2] for line in printed_by(tmp_path).splitlines()] == ["b'0'", "b'1'", "b'2'", "b'3'"]
    assert description(own_broker, group, capsys).splitlines()[2].split()[:5] == [topic, "0", "4", "4", "0"]


def _names(program: str) -> tuple[str, str]:
    """The topic and the group of a consumer."""
    (topic,) = re.findall(r'(?:topics=|subscribe\()\["([\w-]+)"\]', program)
    (group,) = re.findall(r'group(?:\.id)?"?[=:] ?"([\w-]+)"', program)
    return topic, group


def _prepare(broker: BrokerProcess, topic: str, group: str, *jobs: str) -> None:
    cluster = Cluster(broker.address)
    cluster.topic(name=topic)
    cluster.set_group(group, {"share.auto.offset.reset": "earliest"})
    cluster.produce(topic, jobs)


def _terminate_when_printed(program: str, broker: BrokerProcess, folder: Path, text: str) -> None:
    """Runs the program, and sends SIGTERM once it has printed the text; it ends in order. Its argument is the
    transactional id of a copier.
    """
    command = [sys.executable, "-u", "-c", program.replace(ADDRESS, broker.address), "copier-1"]
    with started_program(command, folder) as worker:
        eventually(lambda: text in printed_by(folder), awaited=f"{text!r} is printed")
        worker.terminate()
        assert worker.wait() == 0, errors_of(folder)
    assert "Traceback" not in errors_of(folder)
