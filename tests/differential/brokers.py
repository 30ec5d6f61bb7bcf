"""The brokers to compare: Apache Kafka, and Barnabas with either store for share state."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterable
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks.brokers.apache_kafka import SHORT_LIVED_JVM, ApacheKafka

from tests.clients.broker_process import BrokerProcess, started
from tests.clients.installation import installed_barnabas
from tests.differential.peers import SocketPeer
from tests.differential.playing import SETTINGS
from tests.differential.warming import warm_up

STORES = ("topic", "log")
_KAFKA_SETTINGS = {
    "group.consumer.assignor.offload.enable": "false",
    "log.retention.check.interval.ms": "86400000",
}
"""A heartbeat's answer has the changes that it caused, and old records stay."""


class Peers(NamedTuple):
    """Kafka, and Barnabas by `share.state.store`."""

    kafka: SocketPeer
    ours: dict[str, SocketPeer]


@contextmanager
def running(kafka_address: str | None, kafka_version: str) -> Generator[Peers]:
    """Fresh brokers; a running Kafka with `SETTINGS` may be used repeatedly."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(TemporaryDirectory(prefix="barnabas-diff-")))
        ours = {store: SocketPeer(_start_barnabas(stack, directory / store, store)) for store in STORES}
        kafka = SocketPeer(kafka_address or _start_kafka(stack, directory / "kafka", kafka_version))
        asyncio.run(_warm_up([kafka, *ours.values()]))
        yield Peers(kafka, ours)


def _start_barnabas(stack: ExitStack, directory: Path, store: str) -> str:
    settings = {**SETTINGS, "share.state.store": store}
    return stack.enter_context(started(BrokerProcess(installed_barnabas(), directory, settings))).address


def _start_kafka(stack: ExitStack, directory: Path, version: str) -> str:
    settings = {**SETTINGS, **_KAFKA_SETTINGS}
    kafka = ApacheKafka(directory, settings, version=version, jvm_options=SHORT_LIVED_JVM)
    stack.callback(kafka.kill)
    kafka.start()
    return kafka.address


async def _warm_up(peers: Iterable[SocketPeer]) -> None:
    for peer in peers:
        await warm_up(peer)
