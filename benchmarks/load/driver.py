"""`python -m benchmarks.load.driver ADDRESS`: 500 connections, 50 groups of each type, 1,000 partitions.

Each of 50 topics with 20 partitions has a producer, a share group, a classic group and a KIP-848 group. Every
other group has two members instead of one. In total there are 225 members, each with a connection to its
coordinator and one to the partitions' leader, and 50 producers. All intervals and limits are the defaults of
Kafka's clients and brokers: long polls of 500 ms, commits every 5 s, heartbeats every 3 s in classic groups
and every 5 s in the others. Share consumers accept records with their next fetch.

When each group reads all its partitions and the warm-up is over, the driver prints `steady`. After the window
it prints a line of JSON: the durations in seconds by kind, and its own CPU time. A run fails if a record did
not reach each of its three groups exactly once.
"""

import argparse
import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import uvloop

from benchmarks.load.classic_member import ClassicMember
from benchmarks.load.consumer_member import ConsumerMember
from benchmarks.load.context import PAUSE_SECONDS, Load, Topic, described_topics
from benchmarks.load.producer import Producer
from benchmarks.load.samples import Samples
from benchmarks.load.share_member import ShareMember
from benchmarks.load.wire import Connection

Member = ShareMember | ClassicMember | ConsumerMember

TOPICS = 50
PARTITIONS = 20
RECORDS_PER_SECOND = 250
GROUP_TYPES: Mapping[str, Callable[[Load, str, Topic], Member]] = {
    "share": ShareMember,
    "classic": ClassicMember,
    "consumer": ConsumerMember,
}
JOIN_WITHIN_SECONDS = 5.0
"""The members join one after another, so that they do not stay synchronised."""
READY_SECONDS = 120.0
DRAIN_SECONDS = 10.0
SECOND_DELIVERY_SECONDS = 1.0
"""How long the driver waits for second deliveries after everything was delivered."""


def main() -> None:
    """One run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load.driver", description=__doc__)
    parser.add_argument("address", help="HOST:PORT of a broker that has the topics")
    parser.add_argument(
        "--topics", required=True, metavar="PREFIX", help="the topics' names without their number"
    )
    parser.add_argument("--warm-up", type=float, default=10.0, metavar="SECONDS")
    parser.add_argument("--window", type=float, default=30.0, metavar="SECONDS")
    options = parser.parse_args()
    uvloop.run(_run(options.address, options.topics, options.warm_up, options.window))


def topic_names(prefix: str) -> list[str]:
    """The topics of a run."""
    return [f"{prefix}-{number}" for number in range(TOPICS)]


async def _run(address: str, prefix: str, warm_up: float, window: float) -> None:
    load = Load(address, Samples())
    connection = await Connection.open(address)
    topics = await described_topics(connection, topic_names(prefix))
    connection.close()
    groups = _groups(load, topics)
    members = [member for group in groups for member in group]
    interval = len(topics) / RECORDS_PER_SECOND
    async with asyncio.TaskGroup() as tasks:
        begun = [tasks.create_task(_begin(number, member)) for number, member in enumerate(members)]
        begun += [
            tasks.create_task(Producer(load, topic, interval).run(number / RECORDS_PER_SECOND))
            for number, topic in enumerate(topics)
        ]
        await _ready(groups)
        await asyncio.sleep(warm_up)
        await _measure(load, window)
        for task in begun:
            task.cancel()
    await asyncio.gather(*(member.leave() for member in members))


async def _begin(number: int, member: Member) -> None:
    await asyncio.sleep(JOIN_WITHIN_SECONDS * number / (TOPICS * len(GROUP_TYPES)))
    await member.run()


def _groups(load: Load, topics: Sequence[Topic]) -> list[list[Member]]:
    return [
        [kind(load, f"{name}-of-{topic.name}", topic) for _ in range(1 + number % 2)]
        for number, topic in enumerate(topics)
        for name, kind in GROUP_TYPES.items()
    ]


async def _ready(groups: Sequence[Sequence[Member]]) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while not all(_reads_all(group) for group in groups):
        if time.monotonic() > deadline:
            raise RuntimeError("not every group reads all its partitions")
        await asyncio.sleep(PAUSE_SECONDS)


def _reads_all(group: Sequence[Member]) -> bool:
    read = frozenset[int]().union(*(member.assigned for member in group))
    return len(read) == PARTITIONS and all(member.assigned for member in group)


async def _measure(load: Load, window: float) -> None:
    print("steady", flush=True)
    cpu_before = time.process_time()
    load.samples.open_window(window)
    await asyncio.sleep(window)
    cpu_seconds = time.process_time() - cpu_before
    print(json.dumps({"driver_cpu": cpu_seconds}), flush=True)
    await _drain(load.samples)
    print(json.dumps(load.samples.seconds), flush=True)


async def _drain(samples: Samples) -> None:
    """Wait until all records produced within the window have been delivered to all groups."""
    kinds = [f"{name}_delivery" for name in GROUP_TYPES]
    with suppress(TimeoutError):
        async with asyncio.timeout(DRAIN_SECONDS):
            while any(samples.count(kind) < samples.count("produce") for kind in kinds):  # noqa: ASYNC110
                await asyncio.sleep(PAUSE_SECONDS)
    await asyncio.sleep(SECOND_DELIVERY_SECONDS)
    counts = {kind: samples.count(kind) for kind in ("produce", *kinds)}
    if len(set(counts.values())) > 1:
        raise RuntimeError(f"not each record was delivered once to each group: {counts}")


if __name__ == "__main__":
    main()
