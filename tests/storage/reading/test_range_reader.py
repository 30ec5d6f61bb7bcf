"""Looks at a log for the batches of a hash range, and the buckets that the log keeps for them."""

from __future__ import annotations

from barnabas.protocol.record_batch import ProducedBatch, read_header
from barnabas.protocol.record_keys import key_hash
from barnabas.protocol.record_keys.buckets import ALL_BUCKETS, buckets_of_range
from barnabas.protocol.record_keys.hash_range import HashRange
from barnabas.protocol.records import Record, encode_records
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log_config import LogConfig
from barnabas.storage.reading.range_reader import RangeSlice
from barnabas.storage.state.shared_parts import SharedParts
from tests.storage.log_building import DIRECTORY, NOW_MS, open_log
from tests.storage.memory_filesystem import MemoryFileSystem

SMALL_SEGMENTS = LogConfig(segment_bytes=200, retention_bytes=200)


def append_key(log: PartitionLog, key: bytes) -> None:
    data = encode_records([Record(0, NOW_MS, key, b"value")])
    log.append_produced(data, [ProducedBatch(0, read_header(data))], NOW_MS)


def buckets_of_key(key: bytes) -> int:
    return buckets_of_range(HashRange(key_hash(key), key_hash(key)))


def look(log: PartitionLog, buckets: int, offset: int = 0, bytes_max: int = 2**20) -> RangeSlice:
    return log.key_ranges.look(
        offset, buckets, bytes_max=bytes_max, upper_offset=log.high_watermark, committed_only=False
    )


async def test_a_look_ends_with_its_segment_or_its_bytes() -> None:
    log = await open_log(MemoryFileSystem(), config=LogConfig(segment_bytes=200))
    for key in (b"a", b"b", b"a", b"b", b"a"):
        append_key(log, key)
    assert log.segment_count == 3
    looked = look(log, buckets_of_key(b"a"))
    assert [span.base_offset for span in looked.wanted.batches] == [0]
    assert looked.looked_until == 2
    assert looked.left_out_bytes == looked.wanted.batches[0].end
    assert look(log, buckets_of_key(b"b"), bytes_max=1).looked_until == 1
    assert look(log, buckets_of_key(b"a"), 4).looked_until == 5
    assert look(log, buckets_of_key(b"a"), 5) == RangeSlice(look(log, 0, 5).wanted, 0, 5)


async def test_a_log_keeps_the_buckets_of_its_batches_until_segments_leave_or_it_closes() -> None:
    filesystem = MemoryFileSystem()
    shared = SharedParts.make(filesystem, DIRECTORY, 8)
    kept = shared.key_buckets
    log = await open_log(filesystem, config=SMALL_SEGMENTS, shared=shared)
    for key in (b"a", b"b", b"a", b"b", b"a"):
        append_key(log, key)
    for offset in range(5):
        look(log, ALL_BUCKETS, offset)
    assert len(kept) == 5
    assert await log.enforce_retention(NOW_MS) > 0
    assert len(kept) == 0
    look(log, ALL_BUCKETS, log.log_start_offset)
    assert len(kept) > 0
    await log.close()
    assert len(kept) == 0
