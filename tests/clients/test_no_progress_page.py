"""The commands of docs/no-progress.md print the page's output: a group with every kind of wait at once."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from barnabas.client import ShareConsumer
from tests.clients.broker_process import TEST_SETTINGS, BrokerProcess, reserved_port, started
from tests.clients.cluster import Cluster
from tests.clients.hanging_transaction import leave_hanging
from tests.clients.java_build import PROJECT, java_classpath, require
from tests.clients.page_sessions import run, sessions, words
from tests.clients.test_inspection_page import GROUP, TOPIC, story
from tests.clients.tools import TRANSACTIONS

PAGE = PROJECT / "docs" / "no-progress.md"
LETTERS = "dlq.orders"
SETTINGS = {
    **TEST_SETTINGS,
    "transaction.partition.verification.enable": "false",
}
GROUP_SETTINGS = {
    "errors.deadletterqueue.topic.name": LETTERS,
    "share.isolation.level": "read_committed",
    "share.retry.backoff.ms": "600000",
    "share.retry.backoff.max.ms": "600000",
}
LATE_FAILURES = 3
HANGING_SINCE = timedelta(minutes=40)
VARYING = (
    (re.compile(r"(_age_ms\{[^}]*\}) [\d.]+"), r"\1 AGE"),
    (re.compile(r"answers in [\d.,]+ ms"), "answers in TIME"),
    (re.compile(r"\b1\d{12}\s+\d+"), "LAST DURATION"),
)


def normal(output: str) -> list[list[str]]:
    """The words of each line, without the parts that may differ."""
    for pattern, word in VARYING:
        output = pattern.sub(word, output)
    return words(output)


@asynccontextmanager
async def stuck(broker: BrokerProcess) -> AsyncGenerator[None]:
    """The state that the page describes: the story of docs/inspection.md, in a group that waits for more.

    The letter of record 2 cannot be written, because its topic does not allow letters.
    """
    cluster = Cluster(broker.address)
    cluster.topic(name=LETTERS)
    cluster.set_group(GROUP, GROUP_SETTINGS)
    async with story(broker) as consumer:
        await fail_again(consumer)
        cluster.produce(TOPIC, ["order 8"])
        begun_ms = int((time.time() - HANGING_SINCE.total_seconds()) * 1000)
        await leave_hanging(broker.address, TOPIC, value=b"order 9", timestamp_ms=begun_ms)
        yield


async def fail_again(consumer: ShareConsumer[bytes | None, bytes | None]) -> None:
    """The first new record fails again and again; the others are accepted."""
    for number in range(1, LATE_FAILURES + 1):
        failed, *others = await consumer.poll(timeout=20)
        failed.release(delay=None if number == LATE_FAILURES else timedelta())
        for record in others:
            record.accept()
        await consumer.commit()


def write_transactions_tool(folder: Path) -> None:
    """Kafka's script under its usual name, so that a shell finds it; it logs errors only."""
    script = folder / "kafka-transactions.sh"
    java = f"{require('java')} -Dorg.slf4j.simpleLogger.defaultLogLevel=error"
    line = f'exec {java} -cp {shlex.quote(java_classpath())} {TRANSACTIONS} "$@"\n'
    script.write_text(line, encoding="utf-8")
    script.chmod(0o755)


@pytest.mark.barnabas
async def test_the_commands_print_the_output_of_the_page(
    barnabas_command: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "token").write_text("the-token-of-this-test", encoding="utf-8")
    write_transactions_tool(tmp_path)
    http_port = reserved_port()
    settings = {
        **SETTINGS,
        "http.listener": str(http_port),
        "http.token.file": str(tmp_path / "token"),
    }
    monkeypatch.chdir(tmp_path)
    for folder in (tmp_path, barnabas_command.parent):
        monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    shown = sessions(PAGE)
    assert len(shown) >= 12
    with started(BrokerProcess(barnabas_command, tmp_path / "data", settings)) as broker:
        ports = ((":9092", f":{broker.port}"), (":8080", f":{http_port}"))
        monkeypatch.setenv("BARNABAS_CLIENT_BOOTSTRAP", broker.address)
        async with stuck(broker):
            for command, output in shown:
                given = command
                for of_the_page, of_the_test in ports:
                    given = given.replace(of_the_page, of_the_test)
                exit_code, printed = await asyncio.to_thread(run, given, capsys)
                for of_the_page, of_the_test in ports:
                    printed = printed.replace(of_the_test, of_the_page)
                assert normal(printed) == normal(output), f"{command}\n{printed}"
                assert bool(exit_code) == output.startswith("barnabas: "), command
