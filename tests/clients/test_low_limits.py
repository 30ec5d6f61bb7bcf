"""A broker with less memory or fewer files than it needs continues to serve as soon as they are available
again.
"""

import resource
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.clients.broker_process import BrokerProcess, started
from tests.clients.cluster import Cluster, numbered
from tests.clients.polling import eventually
from tests.clients.raw_frames import (
    Batch,
    RawConnection,
    api_versions_request,
    produce_errors,
    produce_request,
)

pytestmark = pytest.mark.barnabas

ROOM_BYTES = 8 * 1024 * 1024
"""The address space left to the broker after its start: less than `CONNECTIONS` need."""
CONNECTIONS = 600
LESS_THAN_A_THREAD_BYTES = 6 * 1024 * 1024
SETTLED_READINGS = 30
"""Equal readings of the address space in a row, in which the broker has nothing to do."""

DESCRIPTORS = 1024
PARTITIONS = 1100


@pytest.fixture(autouse=True)
def many_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_broker_without_memory_for_connections_accepts_them_again_when_it_has_some(
    own_broker: BrokerProcess,
) -> None:
    with RawConnection(own_broker.address) as connection:
        connection.exchange(api_versions_request())
    _limit_address_space(own_broker.pid, ROOM_BYTES)
    with ExitStack() as clients:
        refused_count = sum(not _is_served(own_broker, clients) for _ in range(CONNECTIONS))
        assert 0 < refused_count < CONNECTIONS
    with ExitStack() as clients:
        eventually(lambda: _is_served(own_broker, clients), awaited="the broker accepts connections again")
        assert all(_is_served(own_broker, clients) for _ in range(20))


def test_a_broker_that_can_start_no_thread_goes_on_writing_and_stops_cleanly(
    own_broker: BrokerProcess,
) -> None:
    cluster = Cluster(own_broker.address)
    cluster.produce(cluster.topic(), ["loads the code for writes"])
    _limit_address_space(own_broker.pid, LESS_THAN_A_THREAD_BYTES)
    for _ in range(3):
        cluster.produce(cluster.topic(), numbered(10))
    assert own_broker.stop() == 0


@pytest.mark.clients
def test_more_partitions_than_descriptors_accept_records(barnabas_command: Path, tmp_path: Path) -> None:
    limited = tmp_path / "limited"
    limited.write_text(f'#!/bin/sh\nulimit -n {DESCRIPTORS}\nexec {barnabas_command} "$@"\n')
    limited.chmod(0o755)
    with started(BrokerProcess(limited, tmp_path / "data")) as broker:
        topic = Cluster(broker.address).topic(PARTITIONS)
        with RawConnection(broker.address) as connection:
            for _ in range(2):
                asked = produce_request(topic, Batch().encode(), partitions=range(PARTITIONS))
                assert produce_errors(connection.exchange(asked)) == [0] * PARTITIONS
        assert broker.stop() == 0


def _is_served(broker: BrokerProcess, clients: ExitStack) -> bool:
    """Whether one more client, which stays connected, gets an answer."""
    client = clients.enter_context(RawConnection(broker.address))
    with suppress(EOFError, ConnectionError):
        return bool(client.exchange(api_versions_request()))
    return False


def _limit_address_space(pid: int, room_bytes: int) -> None:
    limit_bytes = _settled_address_space_bytes(pid) + room_bytes
    resource.prlimit(pid, resource.RLIMIT_AS, (limit_bytes, limit_bytes))


def _settled_address_space_bytes(pid: int) -> int:
    """Waits until the broker has loaded its handlers. It does that while no requests arrive, and needs
    memory. A broker that waits for a processor is not settled.
    """
    readings: list[int] = []

    def is_settled() -> bool:
        if _is_at_work(pid):
            readings.clear()
        readings.append(_address_space_bytes(pid))
        return len(readings) >= SETTLED_READINGS and len(set(readings[-SETTLED_READINGS:])) == 1

    eventually(is_settled, awaited="the broker has loaded its handlers")
    return readings[-1]


def _is_at_work(pid: int) -> bool:
    """Whether a thread of the process runs, or could run if it had a processor."""
    threads = Path(f"/proc/{pid}/task").glob("*/stat")
    return any(thread.read_text().rsplit(")", 1)[1].split()[0] in "RD" for thread in threads)


def _address_space_bytes(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[0])
    return pages * resource.getpagesize()
