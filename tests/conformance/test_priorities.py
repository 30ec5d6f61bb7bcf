"""Share groups with `share.priority.header`, request by request, with both stores of share state."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.record_batch import Compression
from barnabas.protocol.records import Record, encode_records
from barnabas.share.leader import batch_keys
from tests.conformance.conftest import Stage
from tests.conformance.harness import produce_fields
from tests.conformance.share_member import ACCEPT, GROUP, RELEASE, ShareMember

Priority = int | bytes | None
OVERTAKING = f"barnabas_share_overtaking_records_total{{group={GROUP},partition=0,topic=t}}"
INVALID = f"barnabas_share_invalid_priorities_total{{group={GROUP},partition=0,topic=t}}"


def record(delta: int, priority: Priority, key: str | None, time_ms: int, size: int) -> Record:
    value = b"%d" % priority if isinstance(priority, int) else priority
    headers = () if priority is None else (("urgency", value),)
    return Record(delta, time_ms, None if key is None else key.encode(), b"v" * size, headers)


async def produce(
    stage: Stage,
    *priorities: Priority,
    keys: Sequence[str | None] = (),
    codec: Compression = Compression.NONE,
    size: int = 1,
) -> int:
    """Produces one batch with these priorities, each value of this size; returns its base offset."""
    time_ms = stage.lab.clock.wall_ms()
    found = keys or [None] * len(priorities)
    records = [
        record(delta, priority, key, time_ms, size)
        for delta, (priority, key) in enumerate(zip(priorities, found, strict=True))
    ]
    data = encode_records(records, compression=codec)
    response = await stage.lab.admin.ask(
        "produce", **produce_fields(stage.partition.topic_id, stage.partition.partition, data)
    )
    (partition,) = response.responses[0].partition_responses
    assert partition.error_code is ErrorCode.none, response
    return int(partition.base_offset)


async def members(stage: Stage, count: int = 1, **configs: object) -> list[ShareMember]:
    """Members with open sessions, of a group with priorities."""
    await stage.lab.configure_group(GROUP, priority_header="urgency", **configs)
    found = [stage.member(number) for number in range(1, count + 1)]
    for member in found[1:]:
        await member.join("t")
    return found


async def taken(member: ShareMember, max_records: int = 500, **values: Any) -> list[int]:
    """The offsets that a fetch acquires; its answer has all these records."""
    got = await member.fetch(max_records=max_records, **values)
    assert (got.error, got.errors) == (0, [0] * len(got.errors)), got
    offsets = [offset for first, last, _ in got.acquired for offset in range(first, last + 1)]
    assert offsets == sorted(offsets)
    records = [offset for one in got.partitions.values() for offset in one.offsets]
    assert set(offsets) <= set(records)
    return offsets


async def test_the_most_urgent_records_are_delivered_first(stage: Stage) -> None:
    (one,) = await members(stage)
    base = await produce(stage, None, 3, 0, 9, 3)
    order: list[int] = []
    for _ in range(5):
        (offset,) = await taken(one, 1)
        order.append(offset - base)
    assert order == [3, 1, 4, 0, 2]
    assert stage.lab.broker.metrics.snapshot()[OVERTAKING] == 3


async def test_an_urgent_record_in_a_later_batch_overtakes(stage: Stage) -> None:
    (one,) = await members(stage)
    base = await produce(stage, *[None] * 10)
    assert await taken(one, 2) == [base, base + 1]
    urgent = await produce(stage, None, 7)
    assert await taken(one, 2) == [base + 2, urgent + 1]


async def test_a_fetch_is_filled_with_less_urgent_records(stage: Stage) -> None:
    (one,) = await members(stage)
    base = await produce(stage, None, 1, None, 9)
    assert await taken(one) == [base, base + 1, base + 2, base + 3]


@pytest.mark.parametrize("codec", list(Compression))
async def test_every_codec_has_priorities(stage: Stage, codec: Compression) -> None:
    (one,) = await members(stage)
    base = await produce(stage, *[None] * 20, 5, codec=codec)
    assert await taken(one, 1) == [base + 20]


async def test_a_released_record_keeps_its_priority(stage: Stage) -> None:
    (one,) = await members(stage)
    base = await produce(stage, None, 5, 5)
    assert await taken(one, 1) == [base + 1]
    await one.acknowledge([(base + 1, base + 1, RELEASE)])
    assert await taken(one, 1) == [base + 1]


async def test_after_a_restart_the_most_urgent_records_come_first(stage: Stage) -> None:
    (one,) = await members(stage)
    base = await produce(stage, None, 1, 9, 5)
    assert await taken(one, 1) == [base + 2]
    await one.accept(base + 2, base + 2)
    assert await taken(one, 1) == [base + 3]
    await stage.lab.crash()
    assert await taken(stage.member(), 1) == [base + 3]
    assert await taken(stage.member(), 1) == [base + 1]


async def test_an_invalid_priority_is_counted_and_counts_as_0(stage: Stage) -> None:
    (one,) = await members(stage)
    base = await produce(stage, None, b"10", b"high", b"", 1, b"-1", b"\xff")
    assert await taken(one, 1) == [base + 4]
    assert await taken(one, 1) == [base]
    assert stage.lab.broker.metrics.snapshot()[INVALID] == 5


async def test_an_overtaken_record_comes_first_at_the_limit(stage: Stage) -> None:
    (one,) = await members(stage, priority_overtaken_max=3)
    base = await produce(stage, None, None, *[9] * 10)
    found = [(await taken(one, 1))[0] - base for _ in range(6)]
    assert found == [2, 3, 4, 0, 1, 5]


async def test_a_record_that_comes_again_can_be_overtaken_again(stage: Stage) -> None:
    (one,) = await members(stage, priority_overtaken_max=2)
    base = await produce(stage, None, *[9] * 10)
    assert [(await taken(one, 1))[0] - base for _ in range(3)] == [1, 2, 0]
    await one.acknowledge([(base, base, RELEASE)])
    assert [(await taken(one, 1))[0] - base for _ in range(3)] == [3, 4, 0]


async def test_records_behind_the_window_overtake_none(stage: Stage) -> None:
    (one,) = await members(stage, priority_window_records=3)
    base = await produce(stage, None)
    for _ in range(5):
        await produce(stage, None)
    await produce(stage, 9)
    assert [(await taken(one, 1))[0] - base for _ in range(5)] == [0, 1, 2, 3, 6]


async def test_an_urgent_record_is_delivered_although_the_bytes_do_not_suffice_for_all(stage: Stage) -> None:
    (one,) = await members(stage)
    base = await produce(stage, None, size=1_000)
    for _ in range(3):
        await produce(stage, None, size=1_000)
    urgent = await produce(stage, 9, size=1_000)
    assert await taken(one, 1) == [urgent]
    await one.acknowledge([(urgent, urgent, RELEASE)])
    assert await taken(one, max_bytes=2_500) == [urgent]
    assert await taken(one, max_bytes=2_500) == [base, base + 1]


async def test_urgent_records_do_not_wait_behind_scattered_ones(stage: Stage) -> None:
    """A delivery has a bounded number of ranges."""
    (one,) = await members(stage)
    base = await produce(stage, *[9 if number == 198 else number % 2 for number in range(200)])
    first = await taken(one, 100)
    assert base + 198 in first
    assert all((offset - base) % 2 or offset == base + 198 for offset in first)


async def test_no_key_is_reordered(stage: Stage) -> None:
    one, other = await members(stage, 2, order="key")
    base = await produce(stage, None, None, None, 9, keys=["a", "b", "c", "c"])
    assert await taken(one, 1) == [base + 2], "the key has the priority of its urgent record"
    assert await taken(other, 1) == [base]
    await one.accept(base + 2, base + 2)
    assert await taken(one, 1) == [base + 3]


async def test_a_change_of_the_header_waits_for_the_present_locks(stage: Stage) -> None:
    (one,) = await members(stage)
    base = await produce(stage, None, None, 9)
    assert await taken(one, 1) == [base + 2]
    await stage.lab.configure_group(GROUP, priority_header="other")
    assert await taken(one, 1) == []
    await one.accept(base + 2, base + 2)
    assert await taken(one, 1) == [base]


async def test_the_limits_of_priorities_count_from_the_next_fetch_on(stage: Stage) -> None:
    (one,) = await members(stage)
    base = await produce(stage, None, *[9] * 5)
    assert await taken(one, 1) == [base + 1]
    await stage.lab.configure_group(GROUP, priority_overtaken_max=1)
    assert await taken(one, 1) == [base]


async def test_a_batch_that_inflates_beyond_the_bound_has_priority_0(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_keys, "HASHED_BYTES_MAX", 1_000)
    one, other = await members(stage, 2)
    large = await produce(stage, None, 9, codec=Compression.ZSTD, size=1_000)
    small = await produce(stage, 1)
    assert await taken(one, 1) == [small]
    assert await taken(one, 1) == [large]
    assert await taken(other, 1) == [large + 1]


async def test_a_batch_of_very_many_records_is_delivered_alone(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_keys, "HASHED_RECORDS_MAX", 4)
    one, other = await members(stage, 2)
    before = await produce(stage, None)
    large = await produce(stage, None, None, None, None, 9)
    assert await taken(one) == [before]
    assert await taken(other) == [], "all records before the batch must be final"
    await one.accept(before, before)
    assert await taken(other) == list(range(large, large + 5))


@pytest.mark.seeds(4)
async def test_every_record_is_delivered_once(stage: Stage, seed: int) -> None:
    """Under releases, expiries, ends of sessions and a crash, with and without an order of keys."""
    chance = random.Random(seed)
    await members(stage, 1, order=chance.choice(("none", "key")), delivery_count_limit=10)
    wanted: set[int] = set()
    done: list[int] = []
    by_key: dict[str, list[int]] = {}
    for _ in range(6):
        keys = [chance.choice("abc") for _ in range(8)]
        base = await produce(stage, *[chance.choice((None, 1, 9)) for _ in keys], keys=keys)
        wanted |= set(range(base, base + 8))
        for offset, key in enumerate(keys, base):
            by_key.setdefault(key, []).append(offset)
        one = stage.member(1)
        for offset in await taken(one, chance.choice((1, 5))):
            ack = chance.choice((ACCEPT, ACCEPT, RELEASE))
            await one.acknowledge([(offset, offset, ack)])
            done += [offset] if ack == ACCEPT else []
        if chance.random() < 0.3:
            await stage.lab.crash()
        elif chance.random() < 0.3:
            await stage.lab.advance(30_000)
    one = stage.member(1)
    while offsets := await taken(one):
        for offset in offsets:
            await one.accept(offset, offset)
        done += offsets
    assert sorted(done) == sorted(wanted)
