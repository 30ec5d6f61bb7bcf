"""The brokers that are compared: Apache Kafka, and this one with either store for share state."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks.brokers.apache_kafka import ApacheKafka

from tests.clients.broker_process import BrokerProcess, installed_barnabas, started
from tests.differential.areas.groups import group_is_ready
from tests.differential.peers import SocketPeer
from tests.differential.playing import SETTINGS
from tests.differential.stage import Stage

STORES = ("topic", "log")
_KAFKA_SETTINGS = {
    "group.consumer.assignor.offload.enable": "false",
    "log.retention.check.interval.ms": "86400000",
}
"""A heartbeat answers with what it has caused, and records of long ago stay."""


class Peers(NamedTuple):
    """Kafka, and ours by `share.state.store`."""

    kafka: SocketPeer
    ours: dict[str, SocketPeer]


@contextmanager
def running(kafka_address: str | None, kafka_version: str) -> Generator[Peers]:
    """Fresh brokers; a Kafka that runs already, with `SETTINGS`, may be used again and again."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(TemporaryDirectory(prefix="barnabas-diff-")))
        ours = {store: SocketPeer(_start_barnabas(stack, directory / store, store)) for store in STORES}
        kafka = SocketPeer(kafka_address or _start_kafka(stack, directory / "kafka", kafka_version))
        asyncio.run(_warm([kafka, *ours.values()]))
        yield Peers(kafka, ours)


def _start_barnabas(stack: ExitStack, directory: Path, store: str) -> str:
    settings = {**SETTINGS, "share.state.store": store}
    return stack.enter_context(started(BrokerProcess(installed_barnabas(), directory, settings))).address


def _start_kafka(stack: ExitStack, directory: Path, version: str) -> str:
    kafka = ApacheKafka(directory, {**SETTINGS, **_KAFKA_SETTINGS}, version=version)
    stack.callback(kafka.kill)
    kafka.start()
    return kafka.address


async def _has_transactions(stage: Stage) -> bool:
    found = await stage.quietly(0, "find_coordinator", key_type=1, coordinator_keys=["first"])
    listed = await stage.quietly(0, "list_transactions", state_filters=[], producer_id_filters=[])
    ready: bool = found.coordinators[0].error_code == listed.error_code == 0
    return ready


async def _warm(peers: Sequence[SocketPeer]) -> None:
    """Brokers make their internal topics when these are first needed."""
    for peer in peers:
        stage = Stage(peer, seed="", unique="-first")
        try:
            await stage.until(partial(group_is_ready, stage))
            await stage.until(partial(_has_transactions, stage))
            protocols = [{"name": "range", "metadata": b""}]
            joining = {
                "group_id": "first",
                "member_id": "",
                "protocol_type": "consumer",
                "protocols": protocols,
            }
            await stage.quietly(0, "join_group", 0, session_timeout=30_000, **joining)
        finally:
            stage.close()
