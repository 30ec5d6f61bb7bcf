"""`python -m benchmarks.share_group_count`: the cost of thousands of share groups without members.

Each group has joined, acquired and accepted a record of each partition of one topic, and left. So its state
is on each partition, like that of a group from yesterday's tests. The broker is then killed and started
again. The program prints for each number of groups, and first for none:

- memory of the broker once all groups have left, and after the start;
- bytes on disk added by each group;
- seconds from the start of the process to the first answer, and until a member of an old group has acquired a
  record of each partition, with the CPU time that the broker has used until then.
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Producer
from tests.clients.cluster import Cluster

from barnabas.protocol.api import ApiKey
from barnabas.protocol.client.share_fetch_response import decode_share_fetch_response
from barnabas.protocol.client.share_requests import encode_share_fetch_request
from barnabas.protocol.decode.acknowledgements import AckBatch, AckPartition, AckTopic
from barnabas.protocol.decode.share_fetch import ShareFetchBody
from barnabas.protocol.encode.share_fetch import ShareFetchPartitionResult
from benchmarks.brokers.barnabas import Barnabas
from benchmarks.load.context import FETCH_MAX_BYTES, Topic, ask_coordinator, check, described_topics
from benchmarks.load.wire import BODY_OFFSET, Connection, framed

TOPIC = "orders"
RECORDS_PER_PARTITION = 10
TASKS = 16
"""Groups that join and leave at the same time."""

_VERSION = 2
_ACCEPT = b"\x01"
_RECORD_LIMIT = 1
_LEAVING = -1
_MEBIBYTE = 1 << 20


class Figures(NamedTuple):
    """The cost of one number of groups."""

    created_mib: float
    restarted_mib: float
    disk_bytes: int
    first_answer_seconds: float
    first_records_seconds: float
    cpu_seconds: float


def main() -> None:
    options = _parse()
    print("groups  partitions  MiB after leaving  MiB after start  bytes/group  answer s  records s  CPU s")
    for group_count in (0, *options.groups):
        with tempfile.TemporaryDirectory(prefix="share-groups-") as directory:
            found = _measure(Path(directory), group_count, options.partitions, options.store)
        per_group = f"{found.disk_bytes / group_count:11,.0f}" if group_count else " " * 11
        print(
            f"{group_count:6,}  {options.partitions:10}  {found.created_mib:17,.0f}  "
            f"{found.restarted_mib:15,.0f}  {per_group}  {found.first_answer_seconds:8.2f}  "
            f"{found.first_records_seconds:9.2f}  {found.cpu_seconds:5.2f}",
            flush=True,
        )


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.share_group_count", description=__doc__)
    parser.add_argument("--groups", type=_numbers, default=[1_000, 10_000, 50_000], metavar="N,...")
    parser.add_argument(
        "--partitions", type=int, default=4, help="partitions of the topic (default: %(default)s)"
    )
    parser.add_argument("--store", choices=("log", "topic"), default="log", help="share.state.store")
    return parser.parse_args()


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


def _measure(directory: Path, group_count: int, partition_count: int, store: str) -> Figures:
    """Also creates one more group, whose member fetches after the start."""
    settings = {"group.share.max.groups": str(group_count + 1), "share.state.store": store}
    broker = Barnabas(directory / "broker", settings)
    broker.start()
    try:
        Cluster(broker.address).topic(partition_count, name=TOPIC)
        _produce(broker.address, partition_count)
        asyncio.run(_come_and_go(broker.address, ["old"]))
        before_bytes = _disk_bytes(broker.directory / "data")
        asyncio.run(_come_and_go(broker.address, [f"group-{number}" for number in range(group_count)]))
        created_mib = broker.resident_bytes() / _MEBIBYTE
        broker.kill()
        disk_bytes = _disk_bytes(broker.directory / "data") - before_bytes
        begin = time.perf_counter()
        broker.launch()
        broker.await_answer()
        first_answer_seconds = time.perf_counter() - begin
        asyncio.run(_come_and_go(broker.address, ["old"]))
        return Figures(
            created_mib=created_mib,
            restarted_mib=broker.resident_bytes() / _MEBIBYTE,
            disk_bytes=disk_bytes,
            first_answer_seconds=first_answer_seconds,
            first_records_seconds=time.perf_counter() - begin,
            cpu_seconds=broker.cpu_seconds(),
        )
    finally:
        broker.stop()


def _produce(address: str, partition_count: int) -> None:
    producer = Producer({"bootstrap.servers": address})
    for number in range(RECORDS_PER_PARTITION * partition_count):
        producer.produce(TOPIC, f"order {number}", partition=number % partition_count)
    producer.flush()


def _disk_bytes(data: Path) -> int:
    """Without the space that index files only reserve."""
    return sum(min(path.stat().st_size, path.stat().st_blocks * 512) for path in data.rglob("*.log"))


async def _come_and_go(address: str, groups: Sequence[str]) -> None:
    waiting = iter(groups)

    async def work() -> None:
        connection = await Connection.open(address)
        (topic,) = await described_topics(connection, [TOPIC])
        for group in waiting:
            await _Visit(connection, topic, group).run()
        connection.close()

    async with asyncio.TaskGroup() as tasks:
        for _ in range(min(TASKS, len(groups))):
            tasks.create_task(work())


class _Visit:
    """A member that joins its group, accepts a record of each partition, and leaves."""

    def __init__(self, connection: Connection, topic: Topic, group: str) -> None:
        self._connection = connection
        self._topic = topic
        self._group = group
        self._member_id = f"member-of-{group}"

    async def run(self) -> None:
        await self._begin_at_the_first_record()
        await self._heartbeat(0, subscribed_topic_names=[self._topic.name])
        indexes = range(self._topic.partition_count)
        acquired: dict[int, list[AckBatch]] = {}
        session_epoch = 0
        while len(acquired) < self._topic.partition_count:
            named = {index: list[AckBatch]() for index in indexes} if session_epoch == 0 else {}
            for partition in await self._fetch(session_epoch, named):
                if partition.acquired:
                    acquired[partition.partition_index] = [
                        AckBatch(first, last, _ACCEPT) for first, last, _ in partition.acquired
                    ]
            session_epoch += 1
        await self._fetch(_LEAVING, acquired)
        await self._heartbeat(_LEAVING)

    async def _begin_at_the_first_record(self) -> None:
        earliest = {"name": "share.auto.offset.reset", "config_operation": 0, "value": "earliest"}
        resource = {"resource_type": 32, "resource_name": self._group, "configs": [earliest]}
        response = await self._connection.ask("incremental_alter_configs", 1, resources=[resource])
        check(response.responses[0].error_code, "incremental_alter_configs")

    async def _heartbeat(self, member_epoch: int, **values: object) -> None:
        response = await ask_coordinator(
            self._connection,
            "share_group_heartbeat",
            1,
            group_id=self._group,
            member_id=self._member_id,
            member_epoch=member_epoch,
            **values,
        )
        check(response.error_code, "share_group_heartbeat")

    async def _fetch(
        self, session_epoch: int, named: dict[int, list[AckBatch]]
    ) -> list[ShareFetchPartitionResult]:
        is_last = session_epoch == _LEAVING
        partitions = [AckPartition(index, batches) for index, batches in named.items()]
        body = ShareFetchBody(
            group_id=self._group,
            member_id=self._member_id,
            share_session_epoch=session_epoch,
            max_wait_ms=0 if is_last else 100,
            min_bytes=0 if is_last else 1,
            max_bytes=0 if is_last else FETCH_MAX_BYTES,
            max_records=0 if is_last else 1,
            batch_size=1,
            share_acquire_mode=_RECORD_LIMIT,
            is_renew_ack=False,
            topics=[AckTopic(self._topic.topic_id, partitions)] if partitions else [],
            forgotten_topics=[],
        )
        frame = framed(ApiKey.SHARE_FETCH, _VERSION, encode_share_fetch_request(_VERSION, body))
        response = decode_share_fetch_response(_VERSION, await self._connection.send(frame), BODY_OFFSET)
        check(response.error_code, "share_fetch")
        found = [partition for topic in response.topics for partition in topic.partitions]
        for partition in found:
            check(partition.error_code, "share_fetch")
            check(partition.acknowledge_error_code, "acknowledgement")
        return found


if __name__ == "__main__":
    main()
