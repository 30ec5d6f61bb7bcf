"""The commands of docs/inspection.md print the page's output, and its programs run; only times differ."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from barnabas.client import ShareConsumer
from tests.clients.broker_process import BrokerProcess
from tests.clients.cluster import NEVER_MS, Cluster
from tests.clients.java_build import PROJECT
from tests.clients.page_sessions import run, sessions, words
from tests.clients.polling import eventually
from tests.clients.test_readme import blocks, running

PAGE = PROJECT / "docs" / "inspection.md"
GROUP, TOPIC = "ship-orders", "orders"
ORDERS = 8
HELD = 5


@asynccontextmanager
async def story(broker: BrokerProcess) -> AsyncGenerator[ShareConsumer[bytes | None, bytes | None]]:
    """The state that the page describes: one consumer, which holds two of eight orders; yields it."""
    cluster = Cluster(broker.address)
    cluster.topic(name=TOPIC)
    settings = {"share.auto.offset.reset": "earliest", "share.record.lock.duration.ms": str(NEVER_MS)}
    cluster.set_group(GROUP, settings)
    for number in range(ORDERS):
        cluster.produce(TOPIC, [f"order {number}"])
    consumer = ShareConsumer(
        broker.address,
        group=GROUP,
        topics=[TOPIC],
        member_id="worker-1",
        client_id="shipping",
        max_records=HELD,
        acquire_mode="record_limit",
        prefetch_records=0,
        renew_locks=False,
    )
    async with consumer:
        records = aiter(consumer)
        held = [await anext(records) for _ in range(HELD)]
        held[1].accept()
        held[2].reject()
        held[3].release()
        await consumer.commit()
        yield consumer


@pytest.mark.barnabas
async def test_the_commands_print_the_output_of_the_page(
    own_broker: BrokerProcess, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BARNABAS_CLIENT_BOOTSTRAP", own_broker.address)
    shown = sessions(PAGE)
    assert len(shown) >= 5
    async with story(own_broker):
        for command, output in shown:
            exit_code, printed = await asyncio.to_thread(run, command, capsys)
            assert words(printed) == words(output), command
            assert bool(exit_code) == output.startswith("barnabas: "), command


@pytest.mark.barnabas
async def test_the_programs_run(own_broker: BrokerProcess, tmp_path: Path) -> None:
    browsing, administering = blocks(PAGE, "python")
    outputs = [tmp_path / "browsing", tmp_path / "administering"]
    async with story(own_broker):
        with running(browsing, own_broker, outputs[0]):
            await asyncio.to_thread(
                eventually,
                lambda: len(outputs[0].read_text().splitlines()) == ORDERS,
                awaited="the browser prints each record",
            )
        with running(administering, own_broker, outputs[1]):
            await asyncio.to_thread(
                eventually,
                lambda: outputs[1].read_text().splitlines() == ["1 released, 2 archived"],
                awaited="the administrator has changed three records",
            )
    lines = outputs[0].read_text().splitlines()
    assert lines[0] == "0 acquired b'order 0' held by worker-1 (shipping)"
    assert lines[1] == "1 acknowledged b'order 1' last change: accept"
    assert lines[-1] == "7 new b'order 7'"
