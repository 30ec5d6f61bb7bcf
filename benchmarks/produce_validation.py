"""`python -m benchmarks.produce_validation`: the broker's CPU time for produced batches, by size and codec.

A raw client sends encoded batches and keeps a few requests in flight, so that no producer's work disturbs the
measurement. `--baseline COMMAND` also measures another `barnabas`, such as that of a checkout without a
change; `--kafka` also measures Apache Kafka. They take turns. A figure is the CPU time of the broker's
process for a gigabyte of records before compression: the median of the rounds, each with a topic of its own.
"""

import argparse
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tests.clients.cluster import Cluster
from tests.clients.raw_frames import RawConnection, produce_error, produce_request

from barnabas.protocol.record_batch import Compression
from barnabas.protocol.records import Record, encode_records
from benchmarks.brokers.apache_kafka import ApacheKafka
from benchmarks.brokers.barnabas import Barnabas
from benchmarks.brokers.process import LocalBroker, end_orderly_on_sigterm
from benchmarks.page_cache import make_room

ROUND_BYTES: Final = 200_000_000
ROUNDS: Final = 5
IN_FLIGHT: Final = 5
WORDS: Final = 4_000
GIGABYTE: Final = 1e9
PRODUCE_VERSION: Final = 7
"""The first version that allows Zstandard."""


class Shape(NamedTuple):
    """The size of values, the records per batch, and the codec."""

    value_bytes: int
    records_per_batch: int
    codec: Compression

    def __str__(self) -> str:
        return f"{self.value_bytes:>6,} {self.records_per_batch:>7,} {self.codec.name.lower():>7}"


SHAPES: Final = [
    Shape(1_000, 1_000, Compression.NONE),
    Shape(100, 9_000, Compression.NONE),
    Shape(100, 140, Compression.NONE),
    *(
        Shape(100, count, codec)
        for codec in (Compression.LZ4, Compression.ZSTD, Compression.SNAPPY, Compression.GZIP)
        for count in (9_000, 140)
    ),
]


class Round(NamedTuple):
    """The times of one round on one broker, for a gigabyte of records."""

    cpu_seconds: float
    wall_seconds: float


class Baseline(Barnabas):
    """Barnabas from another command."""

    def __init__(self, directory: Path, program: Path) -> None:
        super().__init__(directory)
        self.name = "baseline"
        self._program = program

    def command(self) -> Sequence[str]:
        return [str(self._program), *super().command()[1:]]


def main() -> None:
    parser = argparse.ArgumentParser(description="The broker's CPU time for produced batches.")
    parser.add_argument("--baseline", type=Path, help="also measure this `barnabas` command")
    parser.add_argument("--kafka", action="store_true", help="also measure Apache Kafka")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    arguments = parser.parse_args()
    end_orderly_on_sigterm()
    directory = Path(tempfile.mkdtemp(prefix="produce-validation-"))
    brokers: list[LocalBroker] = [Barnabas(directory / "barnabas")]
    if arguments.baseline is not None:
        brokers.append(Baseline(directory / "baseline", arguments.baseline))
    if arguments.kafka:
        brokers.append(ApacheKafka(directory / "kafka"))
    try:
        for broker in brokers:
            broker.start()
        _measure(brokers, arguments.rounds)
    finally:
        for broker in brokers:
            broker.stop()
        shutil.rmtree(directory)


def _measure(brokers: Sequence[LocalBroker], rounds: int) -> None:
    names = "".join(f"{broker.name + ': CPU s':>18}{'wall s':>8}" for broker in brokers)
    print(f" bytes records   codec{names}   for 1 GB of records")
    for shape in SHAPES:
        batch, plain_bytes = _batch(shape)
        found: list[list[Round]] = [[] for _ in brokers]
        for number in range(rounds + 1):
            turns = list(zip(brokers, found, strict=True))
            for broker, of_broker in turns if number % 2 else reversed(turns):
                one = _produce(broker, batch, plain_bytes)
                if number:  # the first round is the warm-up
                    of_broker.append(one)
        print(shape, *(_median(of_broker) for of_broker in found), flush=True)


def _median(rounds: Sequence[Round]) -> str:
    cpu_seconds = statistics.median(one.cpu_seconds for one in rounds)
    wall_seconds = statistics.median(one.wall_seconds for one in rounds)
    return f"{cpu_seconds:>17.3f}{wall_seconds:>8.3f}"


def _batch(shape: Shape) -> tuple[bytes, int]:
    """A batch, and its size without compression. Values are words, which codecs compress to a third."""
    chance = random.Random(1)
    words = [chance.randbytes(3).hex().encode() for _ in range(WORDS)]
    now_ms = int(time.time() * 1000)
    records: list[Record] = []
    for offset in range(shape.records_per_batch):
        value = b" ".join(chance.choices(words, k=shape.value_bytes // 7 + 1))
        records.append(Record(offset, now_ms + offset % 7, None, value[: shape.value_bytes]))
    return encode_records(records, compression=shape.codec), len(encode_records(records))


def _produce(broker: LocalBroker, batch: bytes, plain_bytes: int) -> Round:
    topic = Cluster(broker.address).topic()
    request = produce_request(topic, batch, version=PRODUCE_VERSION)
    count = ROUND_BYTES // plain_bytes
    make_room(count * len(batch))
    with RawConnection(broker.address, 60.0) as connection:
        _exchange(connection, request, 3)
        began_cpu, began = broker.cpu_seconds(), time.monotonic()
        _exchange(connection, request, count)
        took = Round(broker.cpu_seconds() - began_cpu, time.monotonic() - began)
    factor = GIGABYTE / (count * plain_bytes)
    return Round(took.cpu_seconds * factor, took.wall_seconds * factor)


def _exchange(connection: RawConnection, request: bytes, count: int) -> None:
    for number in range(count):
        connection.send(request)
        if number >= IN_FLIGHT:
            _check(connection.receive())
    for _ in range(min(count, IN_FLIGHT)):
        _check(connection.receive())


def _check(response: bytes) -> None:
    error = produce_error(response)
    if error:
        raise RuntimeError(f"the batch was refused with error {error}")


if __name__ == "__main__":
    main()
