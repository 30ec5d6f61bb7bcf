"""Fetch by hash range (docs/protocol.md): the records, the positions, the wait, and the errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest

from barnabas.broker.fetch.range_fetch import LEFT_OUT_BYTES_MAX, LOOK_BYTES
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.extended.packed import pack_hash_range
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.record_batch import Compression
from barnabas.protocol.record_keys import key_hash
from barnabas.protocol.record_keys.hash_range import ALL_HASHES, HashRange, even_ranges
from barnabas.protocol.records import Record, encode_records
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.reading.batch_buckets import HASHED_RECORDS_MAX, INFLATED_BYTES_MAX, buckets_of_batch
from barnabas.storage.reading.range_reader import RangeReader, RangeSlice
from tests.conformance.conftest import with_log_store_only
from tests.conformance.harness import Lab, open_lab, produce_fields, settle
from tests.conformance.share_member import ACCEPT, GROUP, ShareMember
from tests.conformance.sharer import COMMITTED, MIB, UNCOMMITTED, Sharer, Taken, sharers
from tests.conformance.test_cleaning import SEGMENT_MS, clean, compacted_topic, log_of, produce_keys
from tests.conformance.test_quotas import limit
from tests.protocol.range_fetches import NO_OFFSET
from tests.storage.log_building import NOW_MS, validated
from tests.storage.transactions import Producer

pytestmark = with_log_store_only

LOW, HIGH = even_ranges(2)


def keys_in(hashes: HashRange, count: int) -> list[bytes]:
    """The first numbers, as text, whose hashes are in the range."""
    found: list[bytes] = []
    number = 0
    while len(found) < count:
        key = b"%d" % number
        if hashes.has_record(key_hash(key), 0):
            found.append(key)
        number += 1
    return found


LOW_KEY, OTHER_LOW_KEY = keys_in(LOW, 2)
HIGH_KEY, OTHER_HIGH_KEY = keys_in(HIGH, 2)


async def produce(
    lab: Lab,
    topic_id: UUID,
    keys: Sequence[bytes | None],
    *,
    value: bytes = b"value",
    compression: Compression = Compression.NONE,
) -> None:
    """One batch with a record for each key."""
    now_ms = lab.clock.wall_ms()
    records = [Record(delta, now_ms, key, value) for delta, key in enumerate(keys)]
    data = encode_records(records, compression=compression)
    answer = await lab.admin.ask("produce", **produce_fields(topic_id, 0, data))
    assert answer.responses[0].partition_responses[0].error_code is ErrorCode.none, answer
    await settle()


async def produce_each(lab: Lab, topic_id: UUID, *keys: bytes | None, **options: Any) -> None:
    """A batch for each key."""
    for key in keys:
        await produce(lab, topic_id, [key], **options)


async def log_with(lab: Lab, *keys: bytes | None) -> tuple[UUID, PartitionLog]:
    """A topic with a batch for each key, at least one."""
    topic_id = await lab.create_topic()
    await produce_each(lab, topic_id, *keys)
    return topic_id, log_of(lab, topic_id)


class TestRecords:
    async def test_batches_without_a_record_in_the_range_are_left_out(self, lab: Lab) -> None:
        topic_id, _ = await log_with(lab, LOW_KEY, HIGH_KEY, HIGH_KEY, LOW_KEY, HIGH_KEY)
        low, high = sharers(lab, topic_id, [LOW, HIGH])
        assert await low.fetch() == Taken(0, 5, [0, 3], looked_until=5)
        assert await high.fetch() == Taken(0, 5, [1, 2, 4], looked_until=5)

    @pytest.mark.parametrize("version", [13, 15, 18])
    async def test_every_version_with_topic_ids_has_the_tags(self, lab: Lab, version: int) -> None:
        topic_id, _ = await log_with(lab, HIGH_KEY, LOW_KEY)
        (low,) = sharers(lab, topic_id, [LOW], version=version)
        assert await low.fetch() == Taken(0, 2, [1], looked_until=2)

    async def test_a_batch_with_one_record_in_the_range_is_whole(self, lab: Lab) -> None:
        topic_id, _ = await log_with(lab, HIGH_KEY)
        await produce(lab, topic_id, [HIGH_KEY, LOW_KEY, HIGH_KEY])
        (low,) = sharers(lab, topic_id, [LOW])
        assert await low.fetch() == Taken(0, 4, [1], looked_until=4)
        assert low.kept == [2]

    async def test_a_fetch_inside_a_batch_gets_the_batch(self, lab: Lab) -> None:
        topic_id, _ = await log_with(lab, HIGH_KEY)
        await produce(lab, topic_id, [LOW_KEY, HIGH_KEY, LOW_KEY])
        (low,) = sharers(lab, topic_id, [LOW])
        low.position = 2
        assert await low.fetch() == Taken(0, 4, [1], looked_until=4)
        assert low.kept == [3]

    async def test_records_without_a_key_go_by_their_offsets(self, lab: Lab) -> None:
        topic_id, _ = await log_with(lab, *[None] * 20)
        low, high = sharers(lab, topic_id, [LOW, HIGH])
        await low.catch_up(20)
        await high.catch_up(20)
        assert sorted(low.kept + high.kept) == list(range(20))
        assert low.received_bytes + high.received_bytes == log_of(lab, topic_id).size_bytes

    @pytest.mark.parametrize("codec", list(Compression))
    async def test_compressed_batches_are_left_out(self, lab: Lab, codec: Compression) -> None:
        topic_id = await lab.create_topic()
        await produce_each(lab, topic_id, HIGH_KEY, LOW_KEY, compression=codec)
        (low,) = sharers(lab, topic_id, [LOW])
        assert await low.fetch() == Taken(0, 2, [1], looked_until=2)

    async def test_a_batch_that_inflates_beyond_the_bound_is_sent_to_all(self, lab: Lab) -> None:
        topic_id = await lab.create_topic()
        value = bytes(INFLATED_BYTES_MAX)
        await produce(lab, topic_id, [HIGH_KEY], value=value, compression=Compression.GZIP)
        await produce(lab, topic_id, [HIGH_KEY], value=value)
        (low,) = sharers(lab, topic_id, [LOW])
        assert await low.fetch() == Taken(0, 2, [0], looked_until=2)

    @pytest.mark.parametrize(
        ("count", "sent"), [(HASHED_RECORDS_MAX, []), (HASHED_RECORDS_MAX + 1, [0])], ids=["at", "above"]
    )
    async def test_a_batch_with_more_records_than_are_hashed_is_sent_to_all(
        self, lab: Lab, count: int, sent: list[int]
    ) -> None:
        topic_id = await lab.create_topic()
        await produce(lab, topic_id, [HIGH_KEY] * count)
        (low,) = sharers(lab, topic_id, [LOW])
        assert await low.fetch() == Taken(0, count, sent, looked_until=count)
        assert low.kept == []

    async def test_share_state_is_passed_over(self, lab: Lab) -> None:
        topic_id, log = await log_with(lab, HIGH_KEY, LOW_KEY)
        await lab.configure_group(GROUP, auto_offset_reset="earliest")
        member = ShareMember(lab.client(), [TopicIdPartition(topic_id, 0)])
        await member.join("t")
        await member.take(1)
        await member.acknowledge([(0, 0, ACCEPT)])
        await settle()
        await produce(lab, topic_id, [LOW_KEY])
        state_offset = 2
        assert log.high_watermark > state_offset + 1, "there is share state before the last record"
        (low,) = sharers(lab, topic_id, [LOW])
        last = log.high_watermark - 1
        assert await low.fetch() == Taken(0, last + 1, [1, last], looked_until=last + 1)

    async def test_the_keys_of_a_batch_are_hashed_once(
        self, lab: Lab, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        hashed: list[int] = []

        def counted(data: memoryview) -> int:
            hashed.append(len(data))
            return buckets_of_batch(data)

        monkeypatch.setattr(f"{RangeReader.__module__}.buckets_of_batch", counted)
        topic_id, _ = await log_with(lab, LOW_KEY, HIGH_KEY, LOW_KEY)
        for one in sharers(lab, topic_id, even_ranges(3)):
            await one.catch_up(3)
        assert len(hashed) == 3


class TestPositions:
    async def test_a_position_advances_over_batches_that_are_left_out(self, lab: Lab) -> None:
        topic_id, _ = await log_with(lab, HIGH_KEY, HIGH_KEY)
        (low,) = sharers(lab, topic_id, [LOW])
        assert await low.fetch() == Taken(0, 2, [], looked_until=2)
        await produce_each(lab, topic_id, HIGH_KEY)
        assert await low.fetch() == Taken(0, 3, [], looked_until=3)
        assert await low.fetch() is None, "nothing has changed"

    async def test_an_advance_is_a_change_in_a_session_also_without_another_one(self, lab: Lab) -> None:
        topic_id, _ = await log_with(lab, *[HIGH_KEY] * 3)
        (low,) = sharers(lab, topic_id, [LOW])
        low.position = 3
        assert await low.fetch() == Taken(0, 3, [], looked_until=3)
        low.position = 1
        assert await low.fetch() == Taken(0, 3, [], looked_until=3)

    async def test_the_position_ends_before_a_batch_that_does_not_fit(self, lab: Lab) -> None:
        topic_id = await lab.create_topic()
        await produce_each(lab, topic_id, HIGH_KEY, LOW_KEY, HIGH_KEY, LOW_KEY, HIGH_KEY, value=bytes(1_000))
        (low,) = sharers(lab, topic_id, [LOW])
        assert await low.fetch(partition_max_bytes=1_500) == Taken(0, 5, [1], looked_until=3)
        assert await low.fetch(partition_max_bytes=1) == Taken(0, 5, [3], looked_until=5)

    async def test_one_answer_leaves_out_a_bounded_number_of_bytes(self, lab: Lab) -> None:
        topic_id = await lab.create_topic()
        batch_bytes = MIB // 4
        await produce_each(lab, topic_id, *[HIGH_KEY] * 6, LOW_KEY, value=bytes(batch_bytes))
        (low,) = sharers(lab, topic_id, [LOW])
        whole_batches = LEFT_OUT_BYTES_MAX // batch_bytes
        assert await low.fetch() == Taken(0, 7, [], looked_until=whole_batches)
        assert await low.fetch() == Taken(0, 7, [6], looked_until=7)

    async def test_a_partition_that_is_sent_again_without_the_tag_is_whole(self, lab: Lab) -> None:
        topic_id, _ = await log_with(lab, HIGH_KEY, LOW_KEY)
        (low,) = sharers(lab, topic_id, [LOW])
        await low.fetch()
        low.position, low.hash_range = 0, None
        assert await low.fetch() == Taken(0, 2, [0, 1], NO_OFFSET)

    async def test_all_hashes_are_the_whole_partition(self, lab: Lab) -> None:
        topic_id, _ = await log_with(lab, HIGH_KEY, None, LOW_KEY)
        (one,) = sharers(lab, topic_id, [ALL_HASHES])
        assert await one.fetch() == Taken(0, 3, [0, 1, 2], looked_until=3)

    async def test_a_partition_without_the_tag_has_none_in_its_answer(self, lab: Lab) -> None:
        topic_id, _ = await log_with(lab, HIGH_KEY)
        assert await Sharer(lab.client(), topic_id, None).fetch() == Taken(0, 1, [0], NO_OFFSET)

    async def test_the_records_before_a_damaged_batch_are_sent_and_the_damage_is_an_error(
        self, lab: Lab
    ) -> None:
        topic_id, _ = await log_with(lab, HIGH_KEY, LOW_KEY, HIGH_KEY, LOW_KEY)
        await lab.restart()
        path = next(path for path in lab.filesystem.files if path.endswith(f"t-0/{0:020d}.log"))
        content = lab.filesystem.files[path]
        content[-1] ^= 1
        (low,) = sharers(lab, topic_id, [LOW])
        assert await low.fetch() == Taken(0, 4, [1], looked_until=3)
        taken = await low.fetch()
        assert taken is not None
        assert taken.error != 0


class TestTheWait:
    async def test_goes_on_while_only_records_of_others_arrive(self, lab: Lab) -> None:
        topic_id, _ = await log_with(lab, HIGH_KEY)
        (low,) = sharers(lab, topic_id, [LOW])
        await low.fetch()
        pending = low.send(max_wait=500)
        await produce_each(lab, topic_id, HIGH_KEY, HIGH_KEY)
        await lab.advance(499)
        assert not pending.done
        await lab.advance(1)
        assert low.take(pending) == Taken(0, 3, [], looked_until=3)

    async def test_ends_with_the_first_record_of_the_range(self, lab: Lab) -> None:
        topic_id, _ = await log_with(lab, HIGH_KEY)
        (low,) = sharers(lab, topic_id, [LOW])
        await low.fetch()
        pending = low.send(max_wait=500)
        await produce_each(lab, topic_id, HIGH_KEY, HIGH_KEY, LOW_KEY)
        assert pending.done
        assert low.take(pending) == Taken(0, 4, [3], looked_until=4)

    async def test_goes_on_until_the_requested_bytes_of_the_range_are_there(self, lab: Lab) -> None:
        topic_id, _ = await log_with(lab, HIGH_KEY)
        (low,) = sharers(lab, topic_id, [LOW])
        await low.fetch()
        pending = low.send(max_wait=500, min_bytes=2_000)
        await produce_each(lab, topic_id, LOW_KEY, HIGH_KEY, HIGH_KEY, value=bytes(1_500))
        assert not pending.done
        await produce_each(lab, topic_id, LOW_KEY, value=bytes(1_500))
        assert low.take(pending) == Taken(0, 5, [1, 4], looked_until=5)

    async def test_looks_at_each_batch_once(self, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
        topic_id, _ = await log_with(lab, HIGH_KEY)
        (low,) = sharers(lab, topic_id, [LOW])
        await low.fetch()
        looks: list[tuple[int, int]] = []
        look = RangeReader.look

        def noted(self: RangeReader, offset: int, *args: Any, **options: Any) -> RangeSlice:
            looked = look(self, offset, *args, **options)
            looks.append((offset, looked.looked_until))
            return looked

        monkeypatch.setattr(RangeReader, "look", noted)
        pending = low.send(max_wait=500)
        for _ in range(4):
            await produce_each(lab, topic_id, HIGH_KEY)
        await lab.advance(500)
        assert pending.done
        assert looks == [(offset, offset + 1) for offset in range(1, 5)]

    async def test_ends_early_if_there_is_more_to_look_at_than_one_wake_up_may(self, lab: Lab) -> None:
        topic_id, _ = await log_with(lab, HIGH_KEY)
        (low,) = sharers(lab, topic_id, [LOW])
        await low.fetch()
        pending = low.send(max_wait=500)
        await produce(lab, topic_id, [HIGH_KEY], value=bytes(LOOK_BYTES))
        was_done = pending.done
        log = log_of(lab, topic_id)
        for _ in range(2):
            _append(log, HIGH_KEY, LOOK_BYTES)
        await settle()
        assert (was_done, pending.done) == (False, True), "all of the first batch was looked at"
        assert low.take(pending) == Taken(0, 4, [], looked_until=4)

    async def test_ends_with_an_error_of_the_partition(self, lab: Lab) -> None:
        topic_id, _ = await log_with(lab, HIGH_KEY)
        (low,) = sharers(lab, topic_id, [LOW])
        await low.fetch()
        pending = low.send(max_wait=500)
        await lab.delete_topic("t")
        assert pending.done
        taken = low.take(pending)
        assert taken is not None
        assert (taken.error, taken.looked_until) == (
            ErrorCode.unknown_topic_or_partition.value,
            NO_OFFSET,
        )


class TestTransactions:
    async def test_aborted_batches_and_markers_are_left_out_for_readers_of_committed_records(
        self, lab: Lab
    ) -> None:
        topic_id, log = await log_with(lab, HIGH_KEY)
        producer = Producer(log, 1)
        for key, commit in ((LOW_KEY, False), (LOW_KEY, True), (HIGH_KEY, True)):
            producer.send(key=key)
            producer.end(commit=commit)
        low, high = sharers(lab, topic_id, [LOW, HIGH], isolation_level=COMMITTED)
        assert await low.fetch() == Taken(0, 7, [3], looked_until=7)
        assert await high.fetch() == Taken(0, 7, [0, 5], looked_until=7)
        (all_low,) = sharers(lab, topic_id, [LOW], isolation_level=UNCOMMITTED)
        assert await all_low.fetch() == Taken(0, 7, [1, 3], looked_until=7)

    async def test_committed_records_between_two_aborts_of_a_producer_are_sent(self, lab: Lab) -> None:
        topic_id, log = await log_with(lab, HIGH_KEY)
        first, second = Producer(log, 1), Producer(log, 2)
        first.send(key=LOW_KEY)  # 1
        second.send(key=LOW_KEY)  # 2
        first.abort()  # 3
        first.send(key=LOW_KEY)  # 4
        second.commit()  # 5
        first.commit()  # 6
        first.send(key=LOW_KEY)  # 7
        first.abort()  # 8
        for position, wanted in ((0, [2, 4]), (3, [4]), (4, [4]), (7, [])):
            (low,) = sharers(lab, topic_id, [LOW], isolation_level=COMMITTED)
            low.position = position
            assert await low.fetch() == Taken(0, 9, wanted, looked_until=9)

    async def test_an_open_transaction_ends_the_look(self, lab: Lab) -> None:
        topic_id, log = await log_with(lab, HIGH_KEY)
        producer = Producer(log, 1)
        producer.send(key=LOW_KEY)
        await produce_each(lab, topic_id, LOW_KEY)
        (low,) = sharers(lab, topic_id, [LOW], isolation_level=COMMITTED)
        assert await low.fetch() == Taken(0, 3, [], looked_until=1)
        pending = low.send(max_wait=500)
        await settle()
        assert not pending.done
        producer.commit()
        await settle()
        assert low.take(pending) == Taken(0, 4, [1, 2], looked_until=4)

    async def test_a_position_beyond_the_last_stable_offset_stays(self, lab: Lab) -> None:
        topic_id, log = await log_with(lab, HIGH_KEY)
        Producer(log, 1).send(key=LOW_KEY)
        (low,) = sharers(lab, topic_id, [LOW], isolation_level=COMMITTED)
        low.position = 2
        assert await low.fetch() == Taken(0, 2, [], looked_until=2)


class TestCompaction:
    async def test_gaps_are_passed_over(self, share_state_store: str) -> None:
        async with open_lab(share__state__store=share_state_store) as lab:
            topic_id = await compacted_topic(lab)
            await produce_keys(lab, topic_id, LOW_KEY, HIGH_KEY)
            await produce_keys(lab, topic_id, HIGH_KEY)
            await produce_keys(lab, topic_id, OTHER_LOW_KEY, LOW_KEY)
            (low,) = sharers(lab, topic_id, [LOW])
            await low.catch_up(5)
            await lab.advance(SEGMENT_MS + 1)
            await produce_keys(lab, topic_id, OTHER_HIGH_KEY)
            log = await clean(lab, topic_id)
            assert log.segment_count > 1
            again, high = sharers(lab, topic_id, [LOW, HIGH])
            await again.catch_up(6)
            await high.catch_up(6)
            assert (again.kept, high.kept) == ([3, 4], [2, 5])


class TestErrors:
    @pytest.mark.parametrize(
        "hash_range",
        [b"", bytes(7), bytes(9), pack_hash_range(HashRange(6, 5)), pack_hash_range(HashRange(-1, 5))],
    )
    async def test_a_malformed_range_is_an_error_of_the_partition_also_at_the_end_of_the_log(
        self, lab: Lab, hash_range: bytes
    ) -> None:
        topic_id, _ = await log_with(lab, HIGH_KEY)
        (low,) = sharers(lab, topic_id, [LOW])
        await low.fetch()
        low.hash_range = hash_range
        invalid = Taken(ErrorCode.invalid_request.value, -1, [], NO_OFFSET)
        assert await low.fetch(max_wait=10_000) == invalid
        assert await low.fetch(max_wait=10_000) == invalid, "an error is repeated until it ends"
        low.hash_range = pack_hash_range(LOW)
        assert await low.fetch() == Taken(0, 1, [], looked_until=1)

    @pytest.mark.parametrize("offset", [-1, 7])
    async def test_an_offset_outside_the_log_is_out_of_range(self, lab: Lab, offset: int) -> None:
        topic_id, _ = await log_with(lab, HIGH_KEY)
        (low,) = sharers(lab, topic_id, [LOW])
        low.position = offset
        out_of_range = Taken(ErrorCode.offset_out_of_range.value, -1, [], NO_OFFSET)
        assert await low.fetch(max_wait=10_000) == out_of_range

    async def test_an_offset_that_retention_removes_while_the_fetch_waits_is_no_error(self, lab: Lab) -> None:
        topic_id, _ = await log_with(lab, HIGH_KEY)
        (low,) = sharers(lab, topic_id, [LOW])
        await low.fetch()
        pending = low.send(max_wait=500)
        await produce_each(lab, topic_id, HIGH_KEY)
        await lab.delete_records("t", 2)
        await lab.advance(500)
        assert low.take(pending) == Taken(0, 2, [], looked_until=2), "it has looked at the offset before"


async def test_quotas_count_the_bytes_that_are_sent(lab: Lab) -> None:
    topic_id = await lab.create_topic()
    await produce_each(lab, topic_id, *[HIGH_KEY] * 4, value=bytes(10_000))
    await produce_each(lab, topic_id, LOW_KEY)
    await limit(lab, consumer_byte_rate=1_000)
    (low,) = sharers(lab, topic_id, [LOW])
    for _ in range(5):
        low.position = 0
        assert await low.fetch() == Taken(0, 5, [4], looked_until=5), "not throttled"


def _append(log: PartitionLog, key: bytes, value_bytes: int) -> None:
    """Appends without a pass of the loop, so that a waiting fetch finds all of it at one wake-up."""
    data = encode_records([Record(0, NOW_MS, key, bytes(value_bytes))])
    log.append_produced(data, validated(data), NOW_MS)
