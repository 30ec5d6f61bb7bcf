"""`python -m benchmarks.range_fetching`: the bytes that fetches by hash range save, and their CPU time.

The broker runs in this process, with its files in memory. Members that share a partition read it one after
another, each with its own even range of hashes; an ordinary consumer reads all of it for comparison. The keys
are spread evenly at random. Times are CPU times of the whole process, medians of `ROUNDS` rounds; the client
only finds its next offset. The first sharer finds the keys of no batch hashed, the others those of all.
"""

import asyncio
import random
import statistics
import time
from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from tests.conformance.harness import Client, open_lab
from tests.conformance.messages import message, read, written
from tests.conformance.test_cleaning import log_of
from tests.protocol.range_fetches import NO_OFFSET, range_fetch

from barnabas.protocol.extended.packed import pack_hash_range
from barnabas.protocol.record_batch import Compression, ProducedBatch, iterate_headers, read_header
from barnabas.protocol.record_keys.hash_range import HashRange, even_ranges
from barnabas.protocol.records import Record, encode_records
from barnabas.storage.log.partition_log import PartitionLog

RECORDS: Final = 50_000
KEYS: Final = 10_000
VALUE_BYTES: Final = 100
BATCH_SIZES: Final = (1, 10, 100, 1_000)
SHARER_COUNTS: Final = (2, 4, 8)
ROUNDS: Final = 3
VERSION: Final = 18
BYTES_MAX: Final = 1024 * 1024
NOW_MS: Final = 1_700_000_000_000


class Shape(NamedTuple):
    """The records of each batch, the codec, and whether all records of a batch have one key."""

    records_per_batch: int
    codec: Compression = Compression.NONE
    has_one_key: bool = False

    def __str__(self) -> str:
        keys = "one key" if self.has_one_key else "any keys"
        return f"{self.records_per_batch:>7,} {keys:>9} {self.codec.name.lower():>6}"


SHAPES: Final = (
    *(Shape(count) for count in BATCH_SIZES),
    Shape(10, Compression.ZSTD),
    Shape(100, has_one_key=True),
)


class Reading(NamedTuple):
    """One reader of the whole log."""

    log_bytes: int
    record_bytes: int
    request_count: int
    cpu_seconds: float


def fill(log: PartitionLog, shape: Shape) -> None:
    """Appends the records, each with a value that does not compress."""
    chance = random.Random(1)
    for _ in range(RECORDS // shape.records_per_batch):
        numbers = [chance.randrange(KEYS) for _ in range(1 if shape.has_one_key else shape.records_per_batch)]
        keys = numbers * shape.records_per_batch if shape.has_one_key else numbers
        records = [
            Record(delta, NOW_MS, b"key-%d" % number, chance.randbytes(VALUE_BYTES))
            for delta, number in enumerate(keys)
        ]
        data = encode_records(records, compression=shape.codec)
        log.append_produced(data, [ProducedBatch(0, read_header(data))], NOW_MS)


async def read_all(client: Client, topic_id: UUID, log: PartitionLog, hashes: HashRange | None) -> Reading:
    """Fetches from offset 0 to the end."""
    offset = record_bytes = request_count = 0
    start = time.process_time()
    while offset < log.high_watermark:
        partition = await _fetch(client, topic_id, offset, hashes)
        records = bytes(partition.records or b"")
        record_bytes += len(records)
        request_count += 1
        offset = partition.looked_until_offset
        if offset == NO_OFFSET:
            offset = max(header.last_offset for _, header in iterate_headers(records)) + 1
    return Reading(log.size_bytes, record_bytes, request_count, time.process_time() - start)


async def _fetch(client: Client, topic_id: UUID, offset: int, hashes: HashRange | None) -> Any:
    asked = {
        "partition": 0,
        "fetch_offset": offset,
        "partition_max_bytes": BYTES_MAX,
        "current_leader_epoch": -1,
        "last_fetched_epoch": -1,
        "hash_range": None if hashes is None else pack_hash_range(hashes),
    }
    values = {
        "min_bytes": 1,
        "max_bytes": BYTES_MAX,
        "session_epoch": -1,
        "topics": [{"topic_id": topic_id, "partitions": [asked]}],
    }
    body = written(message(range_fetch(VERSION).request, values))
    pending = client.send_body("fetch", VERSION, body)
    await client.lab.ended(pending)
    answer: Any = read(range_fetch(VERSION).response, pending.body())
    return answer.responses[0].partitions[0]


async def measure(shape: Shape, ranges: Sequence[HashRange | None]) -> list[Reading]:
    """A new log, read once for each of the ranges."""
    async with open_lab() as lab:
        topic_id = await lab.create_topic()
        await lab.produce(topic_id, 1)
        log = log_of(lab, topic_id)
        fill(log, shape)
        return [await read_all(lab.client(), topic_id, log, one) for one in ranges]


def rounds(shape: Shape, ranges: Sequence[HashRange | None]) -> list[tuple[Reading, ...]]:
    """The readings of each reader."""
    return list(zip(*[asyncio.run(measure(shape, ranges)) for _ in range(ROUNDS)], strict=True))


def report(shape: Shape, sharers: str, readers: Sequence[Sequence[Reading]]) -> None:
    """Print a line; `readers` are the readings of each reader."""
    one = readers[0][0]
    sent = statistics.mean(reader[0].record_bytes for reader in readers) / one.log_bytes
    requests = statistics.mean(reader[0].request_count for reader in readers)
    first, *others = (statistics.median(one.cpu_seconds for one in reader) * 1000 for reader in readers)
    later = f"{statistics.mean(others):>10.0f}" if others else ""
    print(
        f"{shape} {sharers:>8} {sent:>6.3f} {1 / len(readers):>6.3f} {requests:>9.1f} {first:>9.0f} {later}",
        flush=True,
    )


def main() -> None:
    """Print the part of the log that one reader gets, the least part possible, its requests and its time."""
    print("records      keys  codec  sharers   sent  least  requests  first ms  others ms")
    for shape in SHAPES:
        report(shape, "none", rounds(shape, [None]))
        for count in SHARER_COUNTS:
            report(shape, str(count), rounds(shape, even_ranges(count)))


if __name__ == "__main__":
    main()
