"""Large requests leave turns to other clients, and get the same answers as small ones."""

import asyncio
import itertools
from typing import Any
from uuid import UUID

import pytest

from barnabas.broker.quotas import meter
from barnabas.protocol.errors import ErrorCode
from tests.conformance.harness import Lab, Pending, open_lab

MISSING = UUID(int=7)
COUNT = 6_000


async def _passes_until(lab: Lab, pending: Pending) -> tuple[int, Any]:
    """The number of small requests of another client answered before the large one, and its answer."""
    other, passes = lab.client(), 0
    while not pending.done:
        assert other.send("api_versions", 0).done
        passes += 1
        await asyncio.sleep(0)
    return passes, pending.response()


async def test_topics_are_created_part_by_part() -> None:
    topics = [
        {"name": f"topic-{number:04}", "num_partitions": 1, "replication_factor": 1}
        for number in range(2_000)
    ]
    async with open_lab() as lab:
        pending = lab.client().send("create_topics", topics=topics)
        passes, response = await _passes_until(lab, pending)
        assert passes >= len(topics) / 50
        assert [topic.name for topic in response.topics] == [topic["name"] for topic in topics]
        assert {topic.error_code for topic in response.topics} == {ErrorCode.none}
        assert len(lab.broker.metadata.image.topics_by_name) == len(topics)


async def test_a_name_given_twice_is_refused_at_any_position() -> None:
    names = ["twice", *(f"topic-{number:04}" for number in range(2_000)), "twice"]
    topics = [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in names]
    async with open_lab() as lab:
        _, response = await _passes_until(lab, lab.client().send("create_topics", topics=topics))
        refused = [topic.name for topic in response.topics if topic.error_code is not ErrorCode.none]
        assert refused == ["twice"]


@pytest.mark.parametrize("session_epoch", [-1, 0])
async def test_partitions_are_fetched_in_turns(session_epoch: int) -> None:
    partitions = [{"partition": index, "fetch_offset": 0, "partition_max_bytes": 1} for index in range(COUNT)]
    topics = [{"topic_id": MISSING, "partitions": partitions}]
    async with open_lab() as lab:
        pending = lab.client().send("fetch", topics=topics, max_wait=0, session_epoch=session_epoch)
        passes, response = await _passes_until(lab, pending)
        assert passes > 10
        (topic,) = response.responses
        assert [one.partition_index for one in topic.partitions] == [*range(COUNT)]
        assert {one.error_code for one in topic.partitions} == {ErrorCode.unknown_topic_id}
        assert (response.session_id != 0) == (session_epoch == 0)


async def test_share_partitions_are_fetched_in_turns() -> None:
    partitions: list[dict[str, Any]] = [
        {"partition_index": index, "acknowledgement_batches": []} for index in range(COUNT)
    ]
    topics = [{"topic_id": MISSING, "partitions": partitions}]
    async with open_lab() as lab:
        pending = lab.client().send(
            "share_fetch",
            group_id="group",
            member_id="member",
            share_session_epoch=0,
            max_records=1,
            topics=topics,
        )
        passes, response = await _passes_until(lab, pending)
        assert passes > 10
        (topic,) = response.responses
        assert [one.partition_index for one in topic.partitions] == [*range(COUNT)]
        assert {one.error_code for one in topic.partitions} == {ErrorCode.unknown_topic_id}


def _creatable(count: int, partition_count: int = 1) -> list[dict[str, Any]]:
    return [
        {"name": f"topic-{number:04}", "num_partitions": partition_count, "replication_factor": 1}
        for number in range(count)
    ]


async def test_topics_with_the_default_number_of_partitions_count_with_it() -> None:
    async with open_lab(num__partitions="30") as lab:
        response = await lab.client().ask("create_topics", topics=_creatable(4_000, -1))
        assert {topic.error_code for topic in response.topics} == {ErrorCode.policy_violation}
        assert not lab.broker.metadata.image.topics_by_name


@pytest.mark.parametrize(("count", "created_count"), [(900, 900), (1_500, 0)])
async def test_topics_that_are_created_for_metadata_are_created_part_by_part_or_not_at_all(
    count: int, created_count: int
) -> None:
    topics = [{"topic_id": None, "name": f"topic-{number:04}"} for number in range(count)]
    async with open_lab(num__partitions="10") as lab:
        pending = lab.client().send("metadata", topics=topics, allow_auto_topic_creation=True)
        passes, response = await _passes_until(lab, pending)
        assert passes >= created_count / 50
        errors = [topic.error_code for topic in response.topics]
        assert errors.count(ErrorCode.none) == created_count
        assert errors.count(ErrorCode.unknown_topic_or_partition) == count - created_count
        assert len(lab.broker.metadata.image.topics_by_name) == created_count


async def test_transactional_ids_are_described_in_turns() -> None:
    names = [f"transactional-id-{number:05}" for number in range(COUNT)]
    async with open_lab() as lab:
        await lab.client().ask("find_coordinator", key_type=1, coordinator_keys=["one"])
        pending = lab.client().send("describe_transactions", transactional_ids=names)
        passes, response = await _passes_until(lab, pending)
        assert passes > 5
        assert [one.transactional_id for one in response.transaction_states] == names
        errors = {one.error_code for one in response.transaction_states}
        assert errors == {ErrorCode.transactional_id_not_found}


async def _limit_request_time(lab: Lab, percentage: float) -> None:
    entity = [{"entity_type": "client-id", "entity_name": "client"}]
    ops = [{"key": "request_percentage", "value": percentage, "remove": False}]
    await lab.admin.ask("alter_client_quotas", entries=[{"entity": entity, "ops": ops}])


@pytest.mark.parametrize("count", [10, 3_000])
async def test_a_client_above_its_quota_gets_the_throttle_time_and_the_error(count: int) -> None:
    topics = [
        {"name": f"missing-{number:05}", "partitions": [{"partition_index": 0}]} for number in range(count)
    ]
    async with open_lab() as lab:
        await _limit_request_time(lab, 0.000_001)
        client = lab.client()
        responses = [await client.ask("offset_delete", group_id="missing", topics=topics) for _ in range(3)]
        assert {one.error_code for one in responses} == {ErrorCode.group_id_not_found}
        assert 0 < responses[-1].throttle_time.total_seconds() <= 1


async def test_the_time_of_every_part_counts_against_the_quota(monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_lab() as lab:
        await _limit_request_time(lab, 50)
        charged_ns: list[int] = []

        def handled(_client_id: str, busy_ns: int) -> int:
            charged_ns.append(busy_ns)
            return 0

        # Each part of a request takes a nanosecond by this clock, however busy the machine is.
        monkeypatch.setattr(meter, "perf_counter_ns", itertools.count().__next__)
        monkeypatch.setattr(lab.broker.quotas, "handled", handled)
        for topic_count in (1, 2_000):
            await lab.client().ask("create_topics", topics=_creatable(topic_count), validate_only=True)
        small, large = charged_ns
        assert large > 20 * small
