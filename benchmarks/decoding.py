"""`python -m benchmarks.decoding`: how fast batches become Arrow columns, beside aiokafka on the same bytes.

No broker is involved. The log is in memory; its records have values of 100 bytes of text. The readers take
turns; each verifies every checksum and reads every field. A figure is the median of five rounds. Times are
CPU times, so that other work on the machine matters less. MB are those of the log before compression, so that
codecs can be compared. The decoder in Python, which is the fallback, reads only a part of the log.
"""

import random
import statistics
import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple, cast

from aiokafka.record.memory_records import MemoryRecords  # pyright: ignore[reportMissingTypeStubs]

from barnabas.pipeline.decoding import DECODED_COLUMNS, _native, _python
from barnabas.protocol.record_batch import Compression
from barnabas.protocol.records import Record, encode_records

LOG_BYTES: Final = 110_000_000
PYTHON_LOG_BYTES: Final = 1_000_000
VALUE_BYTES: Final = 100
HEADER_COUNT: Final = 3
ROUNDS: Final = 5
DIFFERENT_BATCHES: Final = 8
COLUMNS: Final = [name for name in DECODED_COLUMNS if name != "deliveryCount"]


class Shape(NamedTuple):
    """The records per batch, the headers per record, and the codec."""

    records_per_batch: int
    header_count: int
    codec: Compression

    def __str__(self) -> str:
        return f"{self.records_per_batch:>7,} {self.header_count:>8} {self.codec.name.lower():>7}"


class Log(NamedTuple):
    """The log, the number of its records, and its size without compression."""

    data: bytes
    record_count: int
    plain_bytes: int


SHAPES: Final = [
    *(Shape(count, headers, Compression.NONE) for count in (9_000, 100, 1) for headers in (0, HEADER_COUNT)),
    *(Shape(count, 0, codec) for count in (9_000, 100) for codec in Compression if codec),
]


def build_log(shape: Shape, plain_bytes_min: int) -> Log:
    """A log of repeated batches, each with its own offsets, which the checksum does not cover."""
    records = [_records(shape, random.Random(seed)) for seed in range(DIFFERENT_BATCHES)]
    sizes = [len(encode_records(batch)) for batch in records]
    batches = [encode_records(batch, compression=shape.codec) for batch in records]
    parts: list[bytes] = []
    plain_bytes = 0
    while plain_bytes < plain_bytes_min:
        index = len(parts) % DIFFERENT_BATCHES
        base_offset = len(parts) * shape.records_per_batch
        parts.append(base_offset.to_bytes(8, "big") + batches[index][8:])
        plain_bytes += sizes[index]
    return Log(b"".join(parts), len(parts) * shape.records_per_batch, plain_bytes)


def _records(shape: Shape, chance: random.Random) -> list[Record]:
    headers = tuple((f"header-{number}", b"%032x" % number) for number in range(shape.header_count))
    return [
        Record(offset, 1_700_000_000_000 + offset % 7, None, _value(chance), headers)
        for offset in range(shape.records_per_batch)
    ]


def _value(chance: random.Random) -> bytes:
    text = f'{{"id": {chance.getrandbits(40)}, "amount": {chance.random()}, "status": "confirmed"}}'
    return text.encode().ljust(VALUE_BYTES)


def decode(decoder_class: type[_python.RecordDecoder], data: bytes) -> int:
    """Decode every column of every record, in batches of the size that Spark gets."""
    decoder = decoder_class(COLUMNS)
    position = record_count = 0
    while position < len(data):
        position = decoder.add(data, position)
        record_count += int(decoder.take().num_rows)
    return record_count


def decode_natively(data: bytes) -> int:
    return decode(_native.RecordDecoder, data)


def decode_in_python(data: bytes) -> int:
    return decode(_python.RecordDecoder, data)


def read_with_aiokafka(data: bytes) -> int:
    """Every field of every record as a Python object, the only form that aiokafka offers."""
    record_count = 0
    batches = cast("Any", MemoryRecords(data))
    while batches.has_next():
        batch = batches.next_batch()
        assert batch.validate_crc()
        for record in batch:
            _ = (
                record.offset,
                record.timestamp,
                record.timestamp_type,
                record.key,
                record.value,
                record.headers,
            )
            record_count += 1
    return record_count


READERS: Final[dict[str, tuple[Callable[[bytes], int], int]]] = {
    "native": (decode_natively, LOG_BYTES),
    "aiokafka": (read_with_aiokafka, LOG_BYTES),
    "python": (decode_in_python, PYTHON_LOG_BYTES),
}
"""The reader, and the size of the log that it reads."""


def main() -> None:
    """Print a line for each shape: MB/s and million records/s by reader, and native's ratio to aiokafka."""
    print("records".rjust(7), "headers".rjust(8), "codec".rjust(7), end="")
    print(*(f"{name:>10} MB/s  Mrec/s" for name in READERS), "  native / aiokafka", sep="")
    for shape in SHAPES:
        speeds = measure(shape)
        print(
            shape, *(f"{megabytes:>15.0f} {records:>7.2f}" for megabytes, records in speeds.values()), end=""
        )
        print(f"{speeds['native'][0] / speeds['aiokafka'][0]:>20.1f}", flush=True)


def measure(shape: Shape) -> dict[str, tuple[float, float]]:
    """By reader, the medians of MB/s and of million records/s; the readers take turns."""
    logs = {name: build_log(shape, plain_bytes) for name, (_, plain_bytes) in READERS.items()}
    seconds: dict[str, list[float]] = {name: [] for name in READERS}
    for _ in range(ROUNDS):
        for name, (read, _) in READERS.items():
            start = time.process_time()
            record_count = read(logs[name].data)
            seconds[name].append(time.process_time() - start)
            assert record_count == logs[name].record_count
    return {
        name: (logs[name].plain_bytes / median / 1e6, logs[name].record_count / median / 1e6)
        for name, median in ((name, statistics.median(taken)) for name, taken in seconds.items())
    }


if __name__ == "__main__":
    main()
