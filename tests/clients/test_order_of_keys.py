"""Real share consumers in groups with `share.order=key`: each key in its order, and nothing is lost.

Each delivery has a few records of a large batch, so the broker sends batches with only a part of their
records, and acquired ranges with holes.
"""

import random
from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest

from tests.clients.broker_process import BrokerProcess
from tests.clients.cluster import Cluster, unique
from tests.clients.confluent_polling import poll, share_consumer, text
from tests.clients.java_polling import wait_for_lag
from tests.clients.keyed_work import KEYS, ConfluentWorker, JavaWorker, KeyedWork, Worker, produce_keyed
from tests.clients.polling import SECONDS_MAX, eventually
from tests.clients.share_probe import ShareProbe

pytestmark = pytest.mark.barnabas

COUNT = 8
"""Records of each key."""
MODES: list[dict[str, object]] = [
    {"share_acquire_mode": "record_limit", "max_poll_records": 5},
    {"share_acquire_mode": "batch_optimized"},
]


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Closes consumers after the test."""
    with ExitStack() as stack:
        yield stack


def java_worker(stack: ExitStack, probe: ShareProbe, group: str, topic: str, **config: object) -> Worker:
    consumer = probe.consumer(
        unique("consumer"), group, [topic], share_acknowledgement_mode="explicit", **config
    )
    stack.enter_context(closing(consumer))
    return JavaWorker(consumer)


def confluent_worker(stack: ExitStack, bootstrap: str, group: str, topic: str) -> Worker:
    return ConfluentWorker(stack.enter_context(closing(share_consumer(bootstrap, group, topic))))


@pytest.mark.parametrize(
    ("mode", "codec"), [(MODES[0], "none"), (MODES[1], "lz4")], ids=["record_limit", "batch_optimized"]
)
def test_java_consumers_process_each_key_in_order(
    cluster: Cluster, probe: ShareProbe, stack: ExitStack, codec: str, mode: dict[str, object]
) -> None:
    topic, group = cluster.topic(), cluster.group(order="key", delivery_count_limit=10)
    produce_keyed(cluster.bootstrap, topic, range(COUNT), codec=codec)
    workers = [java_worker(stack, probe, group, topic, **mode) for _ in range(3)]
    KeyedWork(workers, random.Random(codec)).finish(COUNT)
    wait_for_lag(probe, group, 0)


def test_confluent_consumers_process_each_key_in_order(
    cluster: Cluster, probe: ShareProbe, stack: ExitStack
) -> None:
    topic, group = cluster.topic(), cluster.group(order="key", delivery_count_limit=10)
    produce_keyed(cluster.bootstrap, topic, range(COUNT), codec="zstd")
    workers = [confluent_worker(stack, cluster.bootstrap, group, topic) for _ in range(3)]
    KeyedWork(workers, random.Random(0)).finish(COUNT)
    wait_for_lag(probe, group, 0)


def test_consumers_of_both_kinds_get_runs_of_one_key(
    cluster: Cluster, probe: ShareProbe, stack: ExitStack
) -> None:
    topic = cluster.topic()
    group = cluster.group(order="key", order_key_in_flight_max=4, delivery_count_limit=10)
    produce_keyed(cluster.bootstrap, topic, range(COUNT), codec="gzip")
    workers = [
        java_worker(stack, probe, group, topic, **MODES[0]),
        confluent_worker(stack, cluster.bootstrap, group, topic),
    ]
    KeyedWork(workers, random.Random(1), run_max=4).finish(COUNT)
    wait_for_lag(probe, group, 0)


def test_implicit_acceptance_keeps_the_order(cluster: Cluster, probe: ShareProbe, stack: ExitStack) -> None:
    topic, group = cluster.topic(), cluster.group(order="key")
    produce_keyed(cluster.bootstrap, topic, range(COUNT))
    consumers = [
        stack.enter_context(closing(share_consumer(cluster.bootstrap, group, topic, mode="implicit")))
        for _ in range(3)
    ]
    numbers: dict[str, list[int]] = {}

    def all_came() -> bool:
        for consumer in consumers:
            records = [text(message).split("/") for message in poll(consumer)]
            assert len({key for key, _ in records}) == len(records)
            for key, number in records:
                numbers.setdefault(key, []).append(int(number))
        return sum(map(len, numbers.values())) >= KEYS * COUNT

    eventually(all_came, awaited="all records are delivered")
    assert all(found == list(range(COUNT)) for found in numbers.values())
    for consumer in consumers:
        consumer.commit_sync(SECONDS_MAX)
    wait_for_lag(probe, group, 0)


def test_the_order_survives_a_kill_of_the_broker(own_broker: BrokerProcess, stack: ExitStack) -> None:
    cluster = Cluster(own_broker.address)
    topic, group = cluster.topic(), cluster.group(order="key", delivery_count_limit=10)
    produce_keyed(cluster.bootstrap, topic, range(COUNT), codec="lz4")
    probe = ShareProbe(cluster.bootstrap)
    stack.callback(probe.kill)
    workers = [
        java_worker(stack, probe, group, topic, **MODES[0]),
        java_worker(stack, probe, group, topic, **MODES[1]),
        confluent_worker(stack, cluster.bootstrap, group, topic),
    ]
    work = KeyedWork(workers, random.Random(2))
    for kill in range(1, 4):
        work.finish_some(kill * KEYS * COUNT // 4)
        own_broker.kill()
        work.outlive()
        own_broker.start()
    work.finish(COUNT)
    wait_for_lag(probe, group, 0)
