"""Broken, hostile and silent peers: they lose their connection or get an error code, without an effect on
others.

Each test ends with a share consumer that existed before: it must still get the next record.
"""

import resource
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import ShareConsumer

from tests.clients.broker_process import BrokerProcess
from tests.clients.cluster import Cluster, unique
from tests.clients.confluent_polling import poll_some, share_consumer, text
from tests.clients.raw_frames import (
    API_VERSIONS,
    INVALID_RECORD,
    MALFORMED_RECORDS,
    METADATA,
    PRODUCE,
    Batch,
    RawConnection,
    api_versions_request,
    frame,
    produce_error,
    produce_request,
    request,
)

pytestmark = pytest.mark.barnabas

CORRUPT_MESSAGE = 2
UNSUPPORTED_VERSION = 35
SILENT_CONNECTIONS = 1000
NO_TAGGED_FIELDS = b"\x00"


@pytest.fixture(scope="module")
def broker(barnabas_command: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """The broker that all these tests abuse; it must run until the end."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    broker = BrokerProcess(barnabas_command, tmp_path_factory.mktemp("bad-input") / "data")
    broker.start()
    yield broker
    assert broker.running()
    broker.kill()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class Bystander:
    """A producer and a share consumer that send only valid requests."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.topic = cluster.topic()
        self.consumer: ShareConsumer = share_consumer(
            cluster.bootstrap, cluster.group(), self.topic, mode="implicit"
        )

    def works(self) -> bool:
        """Whether a new record reaches the share consumer."""
        value = unique("value")
        self.cluster.produce(self.topic, [value], linger_ms=0)
        return [text(message) for message in poll_some(self.consumer)] == [value]


@pytest.fixture(scope="module")
def long_lived_bystander(broker: BrokerProcess) -> Iterator[Bystander]:
    bystander = Bystander(Cluster(broker.address))
    assert bystander.works()
    yield bystander
    bystander.consumer.close()


@pytest.fixture
def bystander(long_lived_bystander: Bystander) -> Iterator[Bystander]:
    """The bystander, which is shown to work after the test."""
    yield long_lived_bystander
    assert long_lived_bystander.works()


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(struct.pack(">i", 0x7FFFFFFF), id="length of two gigabytes"),
        pytest.param(struct.pack(">i", -1), id="negative length"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(600), id="TLS client hello"),
        pytest.param(frame(b""), id="empty frame"),
        pytest.param(frame(b"\x00"), id="one byte for a header"),
        pytest.param(request(999, 0, b""), id="unknown API"),
        pytest.param(request(-1, 0, b""), id="negative API key"),
        pytest.param(request(METADATA, 99, b""), id="unknown version"),
        pytest.param(request(PRODUCE, 0, b""), id="advertised version that cannot be parsed"),
        pytest.param(request(METADATA, 4, b""), id="missing body"),
        pytest.param(request(METADATA, 4, struct.pack(">i", 0x7FFFFFFF)), id="array of two thousand million"),
        pytest.param(request(METADATA, 4, struct.pack(">ih", 1, 30000)), id="string longer than the frame"),
        pytest.param(
            frame(struct.pack(">hhih", METADATA, 4, 7, 30000)), id="client id longer than the frame"
        ),
    ],
)
@pytest.mark.usefixtures("bystander")
def test_an_unreadable_frame_costs_its_sender_the_connection(broker: BrokerProcess, data: bytes) -> None:
    with RawConnection(broker.address) as connection:
        connection.send(data)
        assert connection.closed_by_broker()


@pytest.mark.usefixtures("bystander")
def test_an_http_request_is_answered_in_http_before_the_connection_closes(broker: BrokerProcess) -> None:
    with RawConnection(broker.address) as connection:
        connection.send(b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n")
        assert connection.socket.recv(1000).startswith(b"HTTP/1.1 400 Bad Request\r\n")
        assert connection.closed_by_broker()


@pytest.mark.usefixtures("bystander")
def test_too_new_api_versions_request_gets_the_served_versions(broker: BrokerProcess) -> None:
    with RawConnection(broker.address) as connection:
        response = connection.exchange(request(API_VERSIONS, 99, NO_TAGGED_FIELDS))
        correlation_id, error, count, *only = struct.unpack_from(">ihihhh", response)
        assert (correlation_id, error) == (7, UNSUPPORTED_VERSION)
        assert (count, only[0]) == (1, API_VERSIONS)
        assert connection.exchange(api_versions_request(8))[:4] == struct.pack(">i", 8)


@pytest.mark.usefixtures("bystander")
def test_a_frame_in_single_bytes_is_answered(broker: BrokerProcess) -> None:
    with RawConnection(broker.address) as connection:
        connection.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in api_versions_request():
            connection.send(bytes([byte]))
        assert connection.receive()[:6] == struct.pack(">ih", 7, 0)


@pytest.mark.usefixtures("bystander")
def test_many_requests_in_one_write_are_answered_in_order(broker: BrokerProcess) -> None:
    with RawConnection(broker.address) as connection:
        connection.send(b"".join(map(api_versions_request, range(200))))
        answered = [int.from_bytes(connection.receive()[:4], "big") for _ in range(200)]
        assert answered == list(range(200))


@pytest.mark.parametrize("sent_bytes", [1, 4, 5, 20])
@pytest.mark.usefixtures("bystander")
def test_a_peer_that_disconnects_within_a_frame_harms_no_other(
    broker: BrokerProcess, sent_bytes: int
) -> None:
    with RawConnection(broker.address) as connection:
        connection.send(frame(bytes(100))[:sent_bytes])
        connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@pytest.mark.parametrize(
    ("records", "error"),
    [
        pytest.param(Batch().encode(), 0, id="a sound batch"),
        pytest.param(Batch().encode(crc_change=1), CORRUPT_MESSAGE, id="wrong checksum"),
        pytest.param(Batch().encode(length_change=-40), CORRUPT_MESSAGE, id="length below the header's"),
        pytest.param(Batch().encode(length_change=1), INVALID_RECORD, id="length beyond the end"),
        pytest.param(Batch().encode()[:-3], INVALID_RECORD, id="truncated"),
        pytest.param(Batch().encode()[:30], INVALID_RECORD, id="truncated within the header"),
        pytest.param(Batch(record_count=2).encode(), INVALID_RECORD, id="more records stated than present"),
        pytest.param(Batch(last_offset_delta=5).encode(), INVALID_RECORD, id="offsets beyond the records"),
        pytest.param(Batch(attributes=0x20).encode(), INVALID_RECORD, id="control batch"),
    ],
)
@pytest.mark.usefixtures("bystander")
def test_broken_batches_are_refused_and_the_connection_goes_on(
    broker: BrokerProcess, records: bytes, error: int
) -> None:
    topic = Cluster(broker.address).topic()
    with RawConnection(broker.address) as connection:
        assert produce_error(connection.exchange(produce_request(topic, records))) == error
        assert connection.exchange(api_versions_request(8))[:4] == struct.pack(">i", 8)


@pytest.mark.parametrize("name", MALFORMED_RECORDS)
def test_a_share_consumer_gets_the_records_behind_malformed_ones_in_its_partition(
    broker: BrokerProcess, bystander: Bystander, name: str
) -> None:
    """The batches are refused; librdkafka would acknowledge all records behind them as gaps."""
    with RawConnection(broker.address) as connection:
        request = produce_request(bystander.topic, MALFORMED_RECORDS[name].encode())
        assert produce_error(connection.exchange(request)) == INVALID_RECORD
    assert bystander.works()


def test_a_peer_that_never_reads_its_answers_harms_no_other(
    broker: BrokerProcess, bystander: Bystander
) -> None:
    with RawConnection(broker.address) as connection:
        connection.socket.setblocking(False)
        requests = b"".join(map(api_versions_request, range(1000)))
        try:
            for _ in range(100):
                connection.send(requests)
        except (BlockingIOError, ConnectionError):
            pass
        assert bystander.works()


def test_a_thousand_silent_connections_harm_no_other(broker: BrokerProcess, bystander: Bystander) -> None:
    silent = [RawConnection(broker.address) for _ in range(SILENT_CONNECTIONS)]
    half_frame = api_versions_request()[:9]
    for connection in silent[::2]:
        connection.send(half_frame)
    assert bystander.works()
    assert silent[1].exchange(api_versions_request())[:4] == struct.pack(">i", 7)
    for connection in silent:
        connection.socket.close()
