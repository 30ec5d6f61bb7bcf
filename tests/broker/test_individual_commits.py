"""Ranges of offsets over the protocol: the tags, their answers, and the view of other clients."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.extended.packed import pack_ranges, unpack_ranges
from tests.conformance.harness import Lab, open_lab
from tests.conformance.transacting import Transacting

GROUP = "billing"
RANGES = [(45, 47), (50, 50)]


async def commit(
    lab: Lab, topic_id: UUID, ranges: bytes | list[tuple[int, int]] | None, start: int = -1
) -> Any:
    """The answer for partition 0."""
    packed = pack_ranges(ranges) if isinstance(ranges, list) else ranges
    partition = {"partition_index": 0, "committed_offset": start, "ranges": packed}
    answer = await lab.client().ask(
        "offset_commit",
        10,
        group_id=GROUP,
        member_id="",
        topics=[{"topic_id": topic_id, "partitions": [partition]}],
    )
    return answer.topics[0].partitions[0]


async def fetched(
    lab: Lab, topic_id: UUID, *, wants_ranges: bool = True, require_stable: bool = False
) -> Any:
    """The answer for partition 0."""
    topics = [{"topic_id": topic_id, "partition_indexes": [0]}]
    group = {"group_id": GROUP, "topics": topics, "wants_ranges": wants_ranges}
    answer = await lab.client().ask("offset_fetch", 10, groups=[group], require_stable=require_stable)
    return answer.groups[0].topics[0].partitions[0]


async def begin(lab: Lab) -> UUID:
    """A topic with everything up to offset 42 and two ranges committed."""
    topic_id = await lab.create_topic()
    assert (await commit(lab, topic_id, RANGES, start=43)).error_code is ErrorCode.none
    return topic_id


@pytest.mark.parametrize("come_back", [Lab.restart, Lab.crash])
async def test_ranges_are_committed_and_read_again(come_back: Any) -> None:
    async with open_lab() as lab:
        topic_id = await begin(lab)
        for _ in range(2):
            found = await fetched(lab, topic_id)
            assert (found.committed_offset, unpack_ranges(found.ranges)) == (43, RANGES)
            await come_back(lab)
        await commit(lab, topic_id, [(43, 44)])
        found = await fetched(lab, topic_id)
        assert (found.committed_offset, unpack_ranges(found.ranges)) == (48, [(50, 50)])


async def test_clients_that_do_not_ask_get_the_committed_offset_only() -> None:
    async with open_lab() as lab:
        topic_id = await begin(lab)
        found = await fetched(lab, topic_id, wants_ranges=False)
        assert (found.committed_offset, found.ranges) == (43, None)
        older = await lab.client().ask(
            "offset_fetch",
            9,
            groups=[{"group_id": GROUP, "topics": [{"name": "t", "partition_indexes": [0]}]}],
        )
        assert older.groups[0].topics[0].partitions[0].committed_offset == 43


async def test_a_commit_without_ranges_removes_them() -> None:
    async with open_lab() as lab:
        topic_id = await begin(lab)
        assert (await commit(lab, topic_id, None, start=20)).error_message is None
        found = await fetched(lab, topic_id)
        assert (found.committed_offset, found.ranges) == (20, None)


@pytest.mark.parametrize(
    ("ranges", "code", "message"),
    [
        ([(45, 47)], ErrorCode.invalid_request, "commit the position at which the group begins"),
        (b"fifteen bytes..", ErrorCode.invalid_request, "Ranges need offsets"),
    ],
)
async def test_a_refusal_says_the_remedy(
    ranges: bytes | list[tuple[int, int]], code: ErrorCode, message: str
) -> None:
    async with open_lab() as lab:
        answer = await commit(lab, await lab.create_topic(), ranges)
        assert (answer.error_code, message in answer.error_message) == (code, True)


async def test_too_many_ranges_are_refused_by_the_limit_of_the_broker() -> None:
    async with open_lab(**{"offset.partition.ranges.max": "2"}) as lab:
        topic_id = await begin(lab)
        answer = await commit(lab, topic_id, [(60, 60)])
        assert answer.error_code is ErrorCode.invalid_commit_offset_size
        assert "offset.partition.ranges.max" in answer.error_message
        assert (await commit(lab, topic_id, [(48, 49), (60, 60)])).error_code is ErrorCode.none


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("commits", [True, False])
async def test_ranges_of_a_transaction_count_when_it_is_committed(commits: bool, version: int) -> None:
    async with open_lab() as lab:
        topic_id = await begin(lab)
        transaction = Transacting(lab.client("producer"), version=version)
        await transaction.init()
        assert await transaction.commit_ranges(GROUP, [(43, 44), (60, 61)]) is ErrorCode.none
        pending = await fetched(lab, topic_id, require_stable=True)
        assert pending.error_code is ErrorCode.unstable_offset_commit
        await transaction.end(commit=commits)
        found = await fetched(lab, topic_id, require_stable=True)
        expected = (48, [(50, 50), (60, 61)]) if commits else (43, RANGES)
        assert (found.committed_offset, unpack_ranges(found.ranges)) == expected
