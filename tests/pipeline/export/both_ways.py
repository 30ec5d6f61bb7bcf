"""The steps of the tests of export and restore: fill, work as a group, export, restore, look."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.brokers.process import LocalBroker
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from barnabas.client import Consumer as AsyncConsumer
from barnabas.client import ShareConsumer, ShareRecord
from barnabas.client import TopicPartition as ClientPartition
from barnabas.client.cluster.topics import EARLIEST, LATEST, Topics
from barnabas.pipeline.export.planning import ExportRequest
from barnabas.pipeline.export.restore_state import RestoreState
from barnabas.pipeline.export.restoring import RestorePlan, RestoreRequest, make_topics
from barnabas.pipeline.options import Options
from barnabas.pipeline.reading import PartitionRanges, read_records
from barnabas.pipeline.schema import RECORD_COLUMNS
from barnabas.pipeline.servers import Servers, take_servers
from tests.clients.cluster import Cluster, unique
from tests.clients.polling import SECONDS_MAX, eventually

_LAST = "last"
COORDINATOR_LATER = (
    KafkaError._WAIT_COORD,  # pyright: ignore[reportPrivateUsage]  # its name in librdkafka
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.NOT_COORDINATOR,
)


class Delivered(NamedTuple):
    """A delivered record, without its offset, which shifts."""

    partition: int
    value: bytes | None
    delivery_count: int


def servers_of(broker: LocalBroker) -> Servers:
    return take_servers(Options({"servers": broker.address}))


def export_request(broker: LocalBroker, topic: str, **changes: Any) -> ExportRequest:
    """An export of one topic, with the data directory of Barnabas, which doesn't report all state."""
    data = str(broker.directory / "data")
    directories = (data,) if broker.name == "barnabas" else ()
    given: dict[str, Any] = {"data_directories": directories, "slice_offsets": 70, **changes}
    return ExportRequest(servers=servers_of(broker), topics=(topic,), **given)


def restore_request(broker: LocalBroker, *, append: bool = False) -> RestoreRequest:
    return RestoreRequest(servers=servers_of(broker), append=append)


def produce_all_kinds(broker: LocalBroker, topic: str, partition: int, count: int) -> None:
    """Records with and without keys, values and headers, compressed, with times of their own."""
    producer = Producer({"bootstrap.servers": broker.address, "compression.type": "lz4", "linger.ms": 5})
    for number in range(count):
        headers: list[tuple[str, str | bytes | None]] = [("number", str(number)), ("nothing", None)]
        producer.produce(
            topic,
            key=None if number % 3 == 0 else f"key {number}",
            value=None if number % 5 == 0 else f"value {number}",
            headers=headers[: number % 3],
            timestamp=1_700_000_000_000 + number * 1_001,
            partition=partition,
        )
    assert producer.flush(SECONDS_MAX) == 0


def abort_some(broker: LocalBroker, topic: str) -> None:
    """Records of a transaction that is aborted, where there are transactions."""
    if broker.name == "barnabas":
        return
    producer = Producer({"bootstrap.servers": broker.address, "transactional.id": unique("aborting")})
    producer.init_transactions(SECONDS_MAX)
    producer.begin_transaction()
    for number in range(20):
        producer.produce(topic, f"never {number}", partition=0)
    assert producer.flush(SECONDS_MAX) == 0
    producer.abort_transaction(SECONDS_MAX)


def commit(consumer: Consumer, offset: TopicPartition) -> None:
    """Commit as an ordinary group; a broker that has just started looks for its coordinator first."""
    while True:
        try:
            consumer.commit(offsets=[offset], asynchronous=False)
            return
        except KafkaException as error:
            if error.args[0].code() not in COORDINATOR_LATER:
                raise
        time.sleep(0.1)


async def commit_individually(
    broker: LocalBroker, group: str, topic: str, ranges: list[tuple[int, int]]
) -> None:
    """Commit these ranges of partition 0 as a member that has the whole partition."""
    consumer = AsyncConsumer(
        broker.address,
        group=group,
        topics=[topic],
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        allow_individual_commit=True,
    )
    async with consumer:
        await consumer.poll()
        await consumer.commit_ranges({ClientPartition(topic, 0): ranges})


def read_all(broker: LocalBroker, topic: str) -> dict[int, list[dict[str, Any]]]:
    """By partition, every record without its offset and topic."""
    servers = servers_of(broker)
    found: dict[int, list[dict[str, Any]]] = {}
    for partition, (start, end) in _bounds(servers, topic).items():
        ranges = ((start, end - 1, 0),) if start < end else ()
        batches = read_records(servers, [PartitionRanges(topic, partition, ranges)], tuple(RECORD_COLUMNS))
        rows = [row for batch in batches for row in batch.to_pylist()]
        found[partition.partition] = [
            {name: row[name] for name in ("key", "value", "headers", "timestamp")} for row in rows
        ]
    return found


Settle = Callable[[int, ShareRecord[Any, Any]], None]
"""Settles the nth record."""


def work(broker: LocalBroker, group: str, topic: str, count: int, settle: Settle) -> list[Delivered]:
    """Take `count` records as a member of the group, and settle each."""
    return asyncio.run(_work(broker.address, group, topic, count, settle))


def some_of_each(number: int, record: ShareRecord[Any, Any]) -> None:
    (record.accept, record.reject, record.release)[number % 3]()


def accept(_number: int, record: ShareRecord[Any, Any]) -> None:
    record.accept()


def release(_number: int, record: ShareRecord[Any, Any]) -> None:
    record.release()


def left_for(broker: LocalBroker, group: str, topic: str) -> list[Delivered]:
    """The records that the group still gets, with their delivery counts; all are released.

    A new record at the end of each partition, which the group accepts, shows that no other is left. Those of
    earlier calls do not count.
    """
    last, partitions = unique(_LAST).encode(), _bounds(servers_of(broker), topic)
    producer = Producer({"bootstrap.servers": broker.address})
    for found in partitions:
        producer.produce(topic, last, partition=found.partition)
    assert producer.flush(SECONDS_MAX) == 0
    return sorted(asyncio.run(_left_for(broker.address, group, topic, last, len(partitions))), key=str)


def topic_id_of(broker: LocalBroker, topic: str) -> str:
    (partition, *_) = _bounds(servers_of(broker), topic)
    return str(partition.topic_id)


def delete_records(broker: LocalBroker, topic: str, offset: int) -> None:
    """Let the log of the first partition begin at this offset, as retention would."""
    cluster = Cluster(broker.address)
    (deleted,) = cluster.admin.delete_records([TopicPartition(topic, 0, offset)]).values()
    assert deleted.result().low_watermark == offset


def files_of(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()
    }


def topic_names(broker: LocalBroker) -> set[str]:
    return set(Cluster(broker.address).admin.list_topics(timeout=SECONDS_MAX).topics)


def delete_topic(broker: LocalBroker, topic: str) -> None:
    """Delete it, and return when it is gone."""
    cluster = Cluster(broker.address)
    (deleted,) = cluster.admin.delete_topics([topic], operation_timeout=SECONDS_MAX).values()
    deleted.result()
    eventually(lambda: topic not in topic_names(broker), awaited="the topic is gone")


def make_like(request: RestoreRequest, plan: RestorePlan) -> RestoreState:
    """Make the topics of a restore, as its first step does."""
    state, refused = asyncio.run(make_topics(request, plan))
    assert refused == []
    return state


async def _work(address: str, group: str, topic: str, count: int, settle: Settle) -> list[Delivered]:
    taken: list[ShareRecord[Any, Any]] = []
    async with ShareConsumer(address, group=group, topics=[topic]) as consumer:
        while len(taken) < count:
            taken += await consumer.poll(max_records=count - len(taken))
        for number, record in enumerate(taken):
            settle(number, record)
    return [Delivered(one.partition, one.value, one.delivery_count) for one in taken]


async def _left_for(
    address: str, group: str, topic: str, last: bytes, partition_count: int
) -> list[Delivered]:
    taken: list[ShareRecord[Any, Any]] = []
    async with ShareConsumer(address, group=group, topics=[topic]) as consumer:
        while sum(record.value == last for record in taken) < partition_count:
            taken += await consumer.poll()
        for record in taken:
            (record.accept if _is_last(record.value) else record.release)()
    return [
        Delivered(record.partition, record.value, record.delivery_count)
        for record in taken
        if not _is_last(record.value)
    ]


def _is_last(value: bytes | None) -> bool:
    """Whether `left_for` has written the record, in this call or in an earlier one."""
    return value is not None and value.startswith(_LAST.encode())


def _bounds(servers: Servers, topic: str) -> dict[Any, tuple[int, int]]:
    async def ask() -> dict[Any, tuple[int, int]]:
        cluster = servers.cluster()
        topics = Topics(cluster)
        try:
            (found,) = await topics.find([topic])
            starts = await topics.offsets(found.partitions, EARLIEST)
            ends = await topics.offsets(found.partitions, LATEST)
            return {one: (starts[one] or 0, ends[one] or 0) for one in found.partitions}
        finally:
            topics.close()
            cluster.close()

    return asyncio.run(ask())
