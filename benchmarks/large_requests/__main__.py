"""`python -m benchmarks.large_requests`: how long one client's large requests make another client wait.

One client sends requests that name thousands of topics, partitions or groups, one after the other. Another
client sends ApiVersions every few milliseconds, during each request and for a moment after its answer,
because the broker still works on the changes then. The program prints for each request its size, the time
until its answer, and the longest wait of the other client. The exit code is 1 if that wait is above
WAIT_SECONDS_MAX for any request to Barnabas. `--kafka` sends the same to Apache Kafka. `--only WORD` selects
the requests with that word in their names (and CreateTopics, which the others need).
"""

import argparse
import sys
import tempfile
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from kio.schema.create_topics.v7.response import CreateTopicsResponse
from kio.serial import entity_reader
from tests.clients.raw_frames import RawConnection

from benchmarks.brokers.apache_kafka import ApacheKafka
from benchmarks.brokers.barnabas import Barnabas
from benchmarks.brokers.process import LocalBroker, end_orderly_on_sigterm
from benchmarks.large_requests.probe import Probe
from benchmarks.large_requests.requests import CREATE_TOPICS, REQUESTS, LargeRequest, encoded

WAIT_SECONDS_MAX: Final = 0.05
"""The longest acceptable wait of another client."""
AFTERWARDS_SECONDS: Final = 0.5
"""How long the other client is observed after the answer."""
WARM_UP_SECONDS: Final = 5.0
"""A broker continues to load its program after it has begun to serve."""
TIMEOUT_SECONDS: Final = 300.0
_HEADER_BYTES: Final = 5
_SUBJECT: Final = "barnabas"


class Figures(NamedTuple):
    """The measurements of one request."""

    request_bytes: int
    response_bytes: int
    took_seconds: float
    waited_seconds: float
    cpu_seconds: float

    def __str__(self) -> str:
        kilobytes = f"{self.request_bytes / 1000:>8,.0f}{self.response_bytes / 1000:>10,.0f}"
        return (
            f"{kilobytes}{self.took_seconds * 1000:>12,.1f}{self.cpu_seconds * 1000:>10,.0f}"
            f"{self.waited_seconds * 1000:>10,.1f}"
        )


def main() -> int:
    options = _parse()
    end_orderly_on_sigterm()
    failed = False
    with tempfile.TemporaryDirectory(prefix="large-requests-") as directory:
        brokers: list[LocalBroker] = []
        if not options.kafka_only:
            brokers.append(Barnabas(Path(directory) / _SUBJECT))
        if options.kafka or options.kafka_only:
            brokers.append(ApacheKafka(Path(directory) / "kafka"))
        for broker in brokers:
            try:
                broker.start()
                time.sleep(WARM_UP_SECONDS)
                longest_seconds = _measure(broker, options.only)
            finally:
                broker.stop()
            failed |= broker.name == _SUBJECT and longest_seconds > WAIT_SECONDS_MAX
    return 1 if failed else 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="How long large requests make other clients wait.")
    parser.add_argument("--kafka", action="store_true", help="send the same to Apache Kafka")
    parser.add_argument("--kafka-only", action="store_true", help="send it only to Apache Kafka")
    parser.add_argument("--only", default="", metavar="WORD", help="requests with this word in their names")
    return parser.parse_args()


def _measure(broker: LocalBroker, word: str) -> float:
    """Prints the figures of each request. Returns the longest wait."""
    title = f"{broker.name + ', ms':<44}"
    print(f"{title}{'kB':>8}{'answer kB':>10}{'answered in':>12}{'CPU':>10}{'another waits':>14}", flush=True)
    probe = Probe(broker.address)
    probe.start()
    topic_ids: Sequence[uuid.UUID] = ()
    longest_seconds = 0.0
    with RawConnection(broker.address, TIMEOUT_SECONDS) as connection:
        for request in REQUESTS:
            if request is not CREATE_TOPICS and word not in request.name:
                continue
            figures, response = _send(broker, connection, probe, request, topic_ids)
            if request is CREATE_TOPICS:
                topic_ids = _topic_ids(response)
            mark = " !" if figures.waited_seconds > WAIT_SECONDS_MAX else ""
            print(f"{request.name:<44}{figures}{mark}", flush=True)
            longest_seconds = max(longest_seconds, figures.waited_seconds)
    probe.stop()
    return longest_seconds


def _send(
    broker: LocalBroker,
    connection: RawConnection,
    probe: Probe,
    request: LargeRequest,
    topic_ids: Sequence[uuid.UUID],
) -> tuple[Figures, bytes]:
    frame = encoded(request.make(topic_ids))
    cpu_seconds = broker.cpu_seconds()
    probe.begin()
    began = time.perf_counter()
    response = connection.exchange(frame)
    took_seconds = time.perf_counter() - began
    time.sleep(AFTERWARDS_SECONDS)
    waited_seconds = probe.longest_seconds()
    used_seconds = broker.cpu_seconds() - cpu_seconds
    return Figures(len(frame), len(response), took_seconds, waited_seconds, used_seconds), response


def _topic_ids(response: bytes) -> Sequence[uuid.UUID]:
    created, _ = entity_reader(CreateTopicsResponse)(response, _HEADER_BYTES)
    return [topic.topic_id for topic in created.topics if topic.topic_id is not None]


if __name__ == "__main__":
    sys.exit(main())
