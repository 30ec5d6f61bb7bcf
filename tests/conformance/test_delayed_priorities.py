"""Share groups with priorities in which records are delayed, or expire, with both stores of share state and
with and without an order of keys.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records import Record, encode_records
from tests.conformance.conftest import Stage
from tests.conformance.harness import produce_fields, settle
from tests.conformance.share_member import ACCEPT, GROUP, ShareMember

MINUTE_MS = 60_000


class One(NamedTuple):
    """A record to produce."""

    priority: int = 0
    delay_ms: int | None = None
    age_ms: int = 0
    key: bytes | None = None


@pytest.fixture(params=["none", "key"], ids=["without keys", "in the order of keys"])
def order(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def member_of(stage: Stage, **configs: object) -> ShareMember:
    """A member with an open session, in a group with priorities and these settings."""
    await stage.lab.configure_group(GROUP, priority_header="urgency", **configs)
    member = stage.member()
    assert await member.take() == []
    return member


async def produce(stage: Stage, *ones: One) -> None:
    """Produces each record as a batch."""
    for one in ones:
        headers = [("urgency", b"%d" % one.priority)]
        if one.delay_ms is not None:
            headers.append(("deliver.after.ms", b"%d" % one.delay_ms))
        timestamp_ms = stage.lab.clock.wall_ms() - one.age_ms
        data = encode_records([Record(0, timestamp_ms, one.key, b"v", tuple(headers))])
        response = await stage.lab.admin.ask("produce", **produce_fields(stage.partition.topic_id, 0, data))
        assert response.responses[0].partition_responses[0].error_code is ErrorCode.none, response
    await settle()


async def taken(member: ShareMember, records_max: int = 1) -> list[int]:
    """The offsets that a fetch of that many records acquires."""
    acquired = await member.take(max_records=records_max)
    return [offset for first, last, _ in acquired for offset in range(first, last + 1)]


async def test_a_delayed_urgent_record_overtakes_when_it_is_due(stage: Stage, order: str) -> None:
    member = await member_of(stage, order=order, delay_header="deliver.after.ms")
    await produce(stage, One(), One(9, delay_ms=1_000), One(1), One(), One())
    assert await taken(member) == [2]
    assert await taken(member) == [0]
    await stage.lab.advance(1_000)
    assert await taken(member) == [1]
    assert await taken(member, 5) == [3, 4]


async def test_the_delay_of_the_group_bounds_the_window(stage: Stage, order: str) -> None:
    member = await member_of(stage, order=order, delivery_delay_ms=MINUTE_MS)
    due, late = 2 * MINUTE_MS, MINUTE_MS - 1_000
    await produce(stage, One(age_ms=due), One(1, age_ms=due), One(8, age_ms=late), One(9, age_ms=due))
    assert await taken(member) == [1]
    await stage.lab.advance(1_000)
    assert await taken(member) == [3]
    assert await taken(member) == [2]
    assert await taken(member) == [0]


async def test_a_delayed_record_of_the_window_is_chosen_after_a_restart(stage: Stage, order: str) -> None:
    member = await member_of(stage, order=order, delay_header="deliver.after.ms")
    await produce(stage, One(), One(9, delay_ms=MINUTE_MS), One(1))
    assert await taken(member) == [2]
    await member.acknowledge([(2, 2, ACCEPT)])
    await stage.lab.crash()
    again = stage.member()
    assert await taken(again) == [0]
    await stage.lab.advance(MINUTE_MS)
    assert await taken(again) == [1]


async def test_an_expired_urgent_record_is_not_chosen(stage: Stage, order: str) -> None:
    """It expires between the look ahead of one fetch and the next fetch."""
    member = await member_of(stage, order=order, record_ttl_ms=MINUTE_MS)
    await produce(stage, One(9, age_ms=MINUTE_MS - 2_000), One(9, age_ms=MINUTE_MS - 1_000), One(), One(1))
    assert await taken(member) == [0]
    await stage.lab.advance(1_000)
    assert await taken(member) == [3]
    assert await taken(member) == [2]
    assert await taken(member) == []


async def test_with_keys_a_delayed_record_holds_back_urgent_ones_of_its_key(stage: Stage) -> None:
    member = await member_of(stage, order="key", delay_header="deliver.after.ms")
    await produce(stage, One(0, 1_000, key=b"a"), One(9, key=b"a"), One(1, key=b"b"), One(key=b"c"))
    assert await taken(member, 10) == [2, 3]
    assert await taken(member) == []
    await stage.lab.advance(1_000)
    assert await taken(member, 10) == [0]
    await member.acknowledge([(0, 0, ACCEPT)])
    assert await taken(member, 10) == [1]


async def test_with_keys_a_key_has_the_priority_of_its_delayed_record(stage: Stage) -> None:
    member = await member_of(stage, order="key", delay_header="deliver.after.ms")
    await produce(stage, One(key=b"a"), One(1, key=b"b"), One(9, 1_000, key=b"a"), One(2, key=b"c"))
    assert await taken(member) == [0]
    assert await taken(member) == [3]


async def test_with_keys_the_choice_is_made_again_when_a_chosen_record_has_expired(stage: Stage) -> None:
    """The key of the expired record has a more urgent one behind it."""
    member = await member_of(stage, order="key", record_ttl_ms=MINUTE_MS)
    await produce(
        stage,
        One(9),
        One(1, age_ms=MINUTE_MS - 1_000, key=b"a"),
        One(2, key=b"b"),
        One(8, key=b"a"),
    )
    assert await taken(member) == [0]
    await stage.lab.advance(1_000)
    assert await taken(member) == [3]
    assert await taken(member) == [2]


async def test_with_keys_an_urgent_record_comes_first_if_those_before_it_are_found_expired(
    stage: Stage,
) -> None:
    """The fetch that finds them chooses when it is recorded that they have expired."""
    member = await member_of(stage, order="key", record_ttl_ms=MINUTE_MS)
    await produce(stage, One(1, age_ms=MINUTE_MS, key=b"a"), One(2, key=b"b"), One(8, key=b"a"))
    assert await taken(member) == [2]
    assert await taken(member) == [1]
