"""Share groups with `share.order=key`, request by request, with both stores of share state."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from barnabas.protocol.compression import compress
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.record_batch import (
    TRANSACTIONAL_FLAG,
    Compression,
    build_batch,
    read_header,
    reseal_batch,
)
from barnabas.share.leader import batch_keys
from tests.conformance.conftest import Stage
from tests.conformance.harness import produce_fields, settle
from tests.conformance.share_member import ACCEPT, GROUP, REJECT, RELEASE, ShareMember, fetched
from tests.conformance.transacting import OK, Transacting
from tests.share.partition.core import demand

Keys = Sequence[str | None]


async def produce(stage: Stage, *batches: Keys, codec: Compression = Compression.NONE) -> list[int]:
    """Produces batches with these keys; a record's value is its key. Returns the base offsets."""
    base_offsets: list[int] = []
    for keys in batches:
        encoded = [None if key is None else key.encode() for key in keys]
        data = build_batch(
            0, [(key, key) for key in encoded], leader_epoch=0, timestamp_ms=stage.lab.clock.wall_ms()
        )
        if codec is not Compression.NONE:
            header = read_header(data)
            packed = header._replace(attributes=header.attributes | codec)
            data = reseal_batch(packed, compress(codec, data[61:]))
        response = await stage.lab.admin.ask(
            "produce", **produce_fields(stage.partition.topic_id, stage.partition.partition, data)
        )
        (topic,) = response.responses
        (partition,) = topic.partition_responses
        assert partition.error_code is ErrorCode.none, response
        base_offsets.append(partition.base_offset)
    return base_offsets


async def members(stage: Stage, count: int = 2) -> list[ShareMember]:
    """Members with open sessions, of a group in the order of keys."""
    await stage.lab.configure_group(GROUP, order="key")
    found = [stage.member(number) for number in range(1, count + 1)]
    for member in found[1:]:
        await member.join("t")
    return found


async def taken(member: ShareMember, **values: Any) -> list[int]:
    """The offsets that a fetch acquires; its answer has all these records."""
    got = await member.fetch(**values)
    assert (got.error, got.errors) == (0, [0] * len(got.errors)), got
    offsets = [offset for first, last, _ in got.acquired for offset in range(first, last + 1)]
    records = [offset for one in got.partitions.values() for offset in one.offsets]
    assert set(offsets) <= set(records)
    return offsets


def from_base(offsets: Sequence[int], base_offset: int) -> list[int]:
    return [offset - base_offset for offset in offsets]


async def test_two_records_of_a_key_are_never_delivered_together(stage: Stage) -> None:
    one, other = await members(stage)
    (base,) = await produce(stage, ["a", "a", "b", "a", None, None])
    assert from_base(await taken(one), base) == [0, 2, 4, 5]
    assert await taken(other) == []
    await one.accept(base, base)
    assert from_base(await taken(other), base) == [1]


async def test_a_released_record_comes_before_the_others_of_its_key(stage: Stage) -> None:
    one, other = await members(stage)
    (base,) = await produce(stage, ["a", "a"])
    await taken(one)
    await one.acknowledge([(base, base, RELEASE)])
    assert from_base(await taken(other), base) == [0]


async def test_an_expired_lock_keeps_the_order(stage: Stage) -> None:
    one, other = await members(stage)
    (base,) = await produce(stage, ["a", "a"])
    await taken(one)
    await stage.lab.advance(30_000)
    assert from_base(await taken(other), base) == [0]


async def test_a_rejected_record_frees_its_key(stage: Stage) -> None:
    one, other = await members(stage)
    (base,) = await produce(stage, ["a", "a"])
    await taken(one)
    await one.acknowledge([(base, base, REJECT)])
    assert from_base(await taken(other), base) == [1]


async def test_a_record_at_the_delivery_limit_frees_its_key(stage: Stage) -> None:
    one, _ = await members(stage)
    await stage.lab.configure_group(GROUP, delivery_count_limit=2)
    (base,) = await produce(stage, ["a", "a"])
    for _ in range(2):
        assert from_base(await taken(one), base) == [0]
        await one.acknowledge([(base, base, RELEASE)])
    assert from_base(await taken(one), base) == [1]


async def test_a_fetch_that_waits_is_woken_when_its_key_becomes_free(stage: Stage) -> None:
    one, other = await members(stage)
    (base,) = await produce(stage, ["b", "a", "a"])
    await taken(one)
    waiting = other.start_fetch(max_wait=60_000)
    await stage.lab.advance(10)
    assert not waiting.done, waiting.response()
    # The first record stays locked, so the start offset does not move.
    await one.accept(base + 1, base + 1)
    await settle()
    assert waiting.done
    acquired = waiting.response().responses[0].partitions[0].acquired_records
    assert [(entry.first_offset - base, entry.last_offset - base) for entry in acquired] == [(2, 2)]


async def test_other_keys_flow_past_a_hot_key_within_the_window(stage: Stage) -> None:
    one, other = await members(stage)
    await stage.lab.configure_group(GROUP, partition_max_record_locks=100)
    (base, _, last) = await produce(stage, ["hot"] * 60, ["hot"] * 39 + ["a"], ["b"] * 10)
    assert from_base(await taken(one, max_records=1), base) == [0]
    assert from_base(await taken(other), base) == [last - base - 1], "the window has 100 records"
    assert await taken(other) == []
    await one.accept(base, base)
    assert from_base(await taken(other), base) == [1, 100], "the window moves by one record"


async def test_after_a_restart_the_first_unfinished_record_of_each_key_comes_first(stage: Stage) -> None:
    one, _ = await members(stage)
    (base,) = await produce(stage, ["a", "b", "a", "b", "c"])
    await taken(one)
    await one.acknowledge([(base, base, ACCEPT), (base + 4, base + 4, ACCEPT)])
    await stage.lab.crash()
    again = stage.member(1)
    await again.join("t")
    assert from_base(await taken(again), base) == [1, 2]


async def test_records_that_were_final_before_the_restart_are_not_looked_at_again(stage: Stage) -> None:
    one, _ = await members(stage)
    (first, second, third) = await produce(stage, ["a", "a"], ["b"], ["c"])
    assert await taken(one, max_records=1) == [first]
    await stage.lab.configure_group(GROUP, order="none")
    await one.accept(first, first)
    assert await taken(one) == [first + 1, second, third]
    await one.accept(second, third)
    await stage.lab.configure_group(GROUP, order="key")
    await stage.lab.crash()
    again = stage.member(1)
    await again.join("t")
    assert await taken(again, max_records=1) == [first + 1]
    await again.accept(first + 1, first + 1)
    (last,) = await produce(stage, ["a"])
    assert await taken(again, max_records=1) == [last]


async def test_a_change_of_the_order_waits_for_the_present_locks(stage: Stage) -> None:
    one = stage.member(1)
    (base,) = await produce(stage, ["a", "a", "b"])
    assert len(await taken(one, max_records=2, share_acquire_mode=1)) == 2
    await stage.lab.configure_group(GROUP, order="key")
    other = stage.member(2)
    await other.join("t")
    waiting = other.start_fetch(max_wait=60_000)
    await stage.lab.advance(10)
    assert not waiting.done
    await one.acknowledge([(base, base, ACCEPT)])
    assert not waiting.done
    await one.acknowledge([(base + 1, base + 1, RELEASE)])
    await settle()
    assert waiting.done
    acquired = waiting.response().responses[0].partitions[0].acquired_records
    assert [(entry.first_offset - base, entry.last_offset - base) for entry in acquired] == [(1, 1), (2, 2)]
    await stage.lab.configure_group(GROUP, order="none")
    await other.acknowledge([(base + 1, base + 2, RELEASE)])
    assert from_base(await taken(one), base) == [1, 2]


async def test_a_run_of_a_key_goes_to_one_member_and_is_taken_back_together(stage: Stage) -> None:
    one, other = await members(stage)
    await stage.lab.configure_group(GROUP, order_key_in_flight_max=3)
    (base,) = await produce(stage, ["a", "a", "a", "a", "b"])
    assert from_base(await taken(one), base) == [0, 1, 2, 4]
    assert await taken(other) == []
    result = await one.acknowledge(
        [(base, base, ACCEPT), (base + 1, base + 1, RELEASE), (base + 2, base + 2, ACCEPT)]
    )
    assert result.errors == [0]
    got = await other.fetch()
    assert [(first - base, last - base, count) for first, last, count in got.acquired] == [
        (1, 1, 2),
        (2, 3, 1),
    ]
    late = await one.acknowledge([(base + 2, base + 2, ACCEPT)])
    assert late.errors == [ErrorCode.invalid_record_state]


async def test_a_batch_that_inflates_beyond_the_bound_is_delivered_alone(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_keys, "HASHED_RECORDS_MAX", 4)
    one, other = await members(stage)
    before, large, behind = await produce(stage, ["a"], ["b", "a", "b", "c", "b"], ["d"])
    assert await taken(one) == [before]
    assert await taken(other) == [], "all records before the batch must be final"
    await one.accept(before, before)
    assert await taken(other) == list(range(large, large + 5))
    assert await taken(one) == []
    await other.acknowledge([(large, large + 1, ACCEPT), (large + 2, large + 2, RELEASE)])
    assert await taken(one) == [large + 2, large + 3, large + 4]
    await one.accept(large + 2, large + 4)
    assert await taken(other) == [behind]


async def test_a_batch_that_waits_to_be_delivered_alone_is_not_read_again_and_again(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_keys, "HASHED_RECORDS_MAX", 4)
    one, other = await members(stage)
    before, large = await produce(stage, ["a"], ["b"] * 5)
    assert await taken(one) == [before]
    assert await taken(other) == []
    (leader,) = stage.lab.broker.share_partitions
    limits = stage.lab.broker.share_partitions.limits(GROUP)
    assert leader.core.plan(demand(limits)).reads == []
    waiting = other.start_fetch(max_wait=60_000)
    await one.accept(before, before)
    await settle()
    assert waiting.done
    assert fetched(waiting.response()).acquired == [(large, large + 4, 1)]


@pytest.mark.parametrize("codec", list(Compression))
async def test_every_codec_keeps_the_order(stage: Stage, codec: Compression) -> None:
    (one,) = await members(stage, 1)
    (base,) = await produce(stage, [f"key-{number % 7}" for number in range(30)], codec=codec)
    seen: list[int] = []
    while len(seen) < 30:
        offsets = await taken(one)
        assert offsets
        for offset in offsets:
            await one.accept(offset, offset)
        seen += offsets
    by_key = [[offset for offset in seen if (offset - base) % 7 == key] for key in range(7)]
    assert all(offsets == sorted(offsets) for offsets in by_key)


async def test_records_of_aborted_transactions_do_not_hold_back_their_key(stage: Stage) -> None:
    (one,) = await members(stage, 1)
    await stage.lab.configure_group(GROUP, isolation_level="read_committed")
    await _abort_a_record(stage, b"a")
    (base,) = await produce(stage, ["a"])
    got: list[int] = []
    for _ in range(3):
        got += await taken(one)
    assert got == [base]


async def _abort_a_record(stage: Stage, key: bytes) -> None:
    producer = Transacting(stage.lab.client())
    assert await producer.init() is OK
    records = build_batch(
        0,
        [(key, key)],
        leader_epoch=0,
        timestamp_ms=stage.lab.clock.wall_ms(),
        attributes=TRANSACTIONAL_FLAG,
        producer_id=producer.producer.producer_id,
        producer_epoch=producer.producer.producer_epoch,
        base_sequence=0,
    )
    topic = {"name": "t", "partition_data": [{"index": 0, "records": records}]}
    answer = await producer.client.ask(
        "produce", 12, transactional_id=producer.transactional_id, acks=-1, topic_data=[topic]
    )
    assert answer.responses[0].partition_responses[0].error_code is OK
    assert await producer.end(commit=False) is OK


@pytest.mark.seeds(2)
async def test_keys_stay_in_order_under_releases_expiries_sessions_and_crashes(
    stage: Stage, seed: int
) -> None:
    """Sixteen members work on one partition; the records of each key become final in their order."""
    chance = random.Random(seed)
    await stage.lab.configure_group(GROUP, order="key", delivery_count_limit=10)
    group = await members(stage, 16)
    keys = [[f"key-{chance.randrange(40)}" for _ in range(chance.randrange(1, 30))] for _ in range(20)]
    key_of: dict[int, str] = {}
    for batch in keys:
        (base,) = await produce(stage, batch)
        key_of |= {base + index: key for index, key in enumerate(batch)}
    finished: dict[str, list[int]] = {}
    held: dict[ShareMember, list[int]] = {member: [] for member in group}
    while sum(map(len, finished.values())) < len(key_of):
        member = chance.choice(group)
        if held[member]:
            offset = held[member].pop(chance.randrange(len(held[member])))
            ack = chance.choice([ACCEPT, ACCEPT, ACCEPT, RELEASE])
            result = await member.acknowledge([(offset, offset, ack)])
            assert result.errors == [0]
            if ack == ACCEPT:
                finished.setdefault(key_of[offset], []).append(offset)
        else:
            held[member] = await taken(member, max_records=chance.choice([1, 5, 50]))
        _check_held(held, key_of)
        if chance.random() < 0.02:
            await _interrupt(stage, chance, group, held)
    for offsets in finished.values():
        assert offsets == sorted(offsets)


def _check_held(held: dict[ShareMember, list[int]], key_of: dict[int, str]) -> None:
    keys = [key_of[offset] for offsets in held.values() for offset in offsets]
    assert len(keys) == len(set(keys)), "no key is held twice"


async def _interrupt(
    stage: Stage, chance: random.Random, group: list[ShareMember], held: dict[ShareMember, list[int]]
) -> None:
    if chance.random() < 0.5:
        member = chance.choice(group)
        if member.epoch:
            await member.leave_session()
            member.epoch = 0
        held[member] = []
        return
    await stage.lab.crash()
    for member in group:
        member.client = stage.lab.client()
        member.epoch = 0
        held[member] = []
        await member.join("t")
