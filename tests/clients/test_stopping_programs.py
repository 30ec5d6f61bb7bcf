"""The programs of the pages that handle SIGTERM end without an error, and their consumers leave the group."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from barnabas.__main__ import main
from tests.clients.broker_process import BrokerProcess
from tests.clients.cluster import Cluster
from tests.clients.java_build import PROJECT
from tests.clients.polling import eventually
from tests.clients.test_readme import ADDRESS, blocks

PROGRAMS = [
    pytest.param(page, program, id=f"{page}-{number}")
    for page in ("asyncio-client", "from-celery")
    for number, program in enumerate(blocks(PROJECT / "docs" / f"{page}.md", "python"))
    if "SIGTERM" in program
]
JOB = '{"task": "resize", "arguments": [7, "7.png"]}'


def test_both_pages_have_programs_that_handle_the_signal() -> None:
    assert [one.values[0] for one in PROGRAMS] == ["asyncio-client", "from-celery", "from-celery"]


@pytest.mark.barnabas
@pytest.mark.parametrize(("page", "program"), PROGRAMS)
def test_a_worker_closes_its_consumer_on_sigterm(
    own_broker: BrokerProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str], page: str, program: str
) -> None:
    topic = "orders" if page == "asyncio-client" else "jobs"
    cluster = Cluster(own_broker.address)
    cluster.topic(name=topic)
    cluster.set_group("workers", {"share.auto.offset.reset": "earliest"})
    cluster.produce(topic, [JOB])
    output, errors = tmp_path / "output", tmp_path / "errors"
    with output.open("wb") as out, errors.open("wb") as err:
        worker = subprocess.Popen(
            [sys.executable, "-u", "-c", program.replace(ADDRESS, own_broker.address)], stdout=out, stderr=err
        )
    try:
        eventually(lambda: "7" in output.read_text(), awaited="the job is done", deadline_seconds=40)
        worker.terminate()
        assert worker.wait(30) == 0, errors.read_text()
    finally:
        worker.kill()
        worker.wait(30)
    assert "Traceback" not in errors.read_text()
    capsys.readouterr()
    assert main(["groups", "describe", "workers", "--bootstrap", own_broker.address]) == 0
    assert capsys.readouterr().out.startswith("workers  (share group, empty,")
