"""Offsets are deleted with their topic, also if they could not be deleted at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from barnabas.broker.internal_topics.internal_topic import InternalTopic
from barnabas.coordinator.metadata.topic_names import OFFSETS_TOPIC
from barnabas.coordinator.replay.key_partition import partition_of_key
from barnabas.protocol.errors import ErrorCode
from barnabas.storage.log.appended import Append
from tests.broker.quick_reopening import reopen_at_once
from tests.conformance.harness import INTERNAL_PARTITIONS, Lab, open_lab, settle
from tests.conformance.transacting import Transacting

GROUP = "billing"
DIRECTORY = f"{OFFSETS_TOPIC}-{partition_of_key(GROUP, INTERNAL_PARTITIONS)}"
RETRIABLE = (ErrorCode.coordinator_not_available, ErrorCode.coordinator_load_in_progress)


async def commit(lab: Lab, topic_name: str) -> ErrorCode:
    topics = [{"name": topic_name, "partitions": [{"partition_index": 0, "committed_offset": 7}]}]
    answer = await lab.client().ask("offset_commit", 9, group_id=GROUP, member_id="", topics=topics)
    return ErrorCode(answer.topics[0].partitions[0].error_code)


async def begin_with(lab: Lab, *topic_names: str) -> None:
    """Creates the topics, and commits an offset of the group for each."""
    for name in topic_names:
        await lab.create_topic(name, 2)
        assert await commit(lab, name) is ErrorCode.none


async def committed(lab: Lab, topic_name: str, group: str = GROUP) -> int:
    """The group's committed offset for partition 0; -1 if there is none."""
    asked = {"group_id": group, "topics": [{"name": topic_name, "partition_indexes": [0]}]}
    response = await lab.client().ask("offset_fetch", 9, groups=[asked])
    assert response.groups[0].error_code is ErrorCode.none
    return int(response.groups[0].topics[0].partitions[0].committed_offset)


async def committed_topics(lab: Lab) -> list[str]:
    """The topics with committed offsets of the group, once it is served."""
    for _ in range(10):
        response = await lab.client().ask("offset_fetch", 9, groups=[{"group_id": GROUP, "topics": None}])
        (group,) = response.groups
        if group.error_code is ErrorCode.none:
            return [topic.name for topic in group.topics]
        assert group.error_code in RETRIABLE, group
        await settle()
    raise AssertionError("the group stays unloaded")


async def delete_unforgotten(lab: Lab, topic_name: str) -> None:
    """Deletes the topic while the deletion of its offsets cannot be written."""
    with lab.broken_disk(DIRECTORY):
        await lab.delete_topic(topic_name)
        await settle()


async def test_offsets_of_a_deleted_topic_are_forgotten_once_the_log_is_open_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reopen_at_once(monkeypatch)
    async with open_lab() as lab:
        await begin_with(lab, "gone", "kept")
        await delete_unforgotten(lab, "gone")
        assert await commit(lab, "kept") in RETRIABLE
        assert await committed_topics(lab) == ["kept"]
        await lab.crash()
        assert await committed_topics(lab) == ["kept"]


async def test_offsets_of_a_deleted_topic_are_forgotten_with_the_next_start() -> None:
    async with open_lab() as lab:
        await begin_with(lab, "gone", "kept")
        await delete_unforgotten(lab, "gone")
        await lab.crash()
        assert await committed_topics(lab) == ["kept"]


async def test_a_new_topic_with_the_same_name_keeps_its_own_offsets() -> None:
    async with open_lab() as lab:
        await begin_with(lab, "t")
        await delete_unforgotten(lab, "t")
        await lab.create_topic("t", 2)
        assert await committed(lab, "t") == -1
        await lab.crash()
        assert await committed_topics(lab) == []
        assert await commit(lab, "t") is ErrorCode.none
        await lab.crash()
        assert await committed_topics(lab) == ["t"]


async def test_offsets_of_another_groups_transaction_for_the_new_topic_stay() -> None:
    async with open_lab() as lab:
        await begin_with(lab, "t")
        await delete_unforgotten(lab, "t")
        await lab.create_topic("t", 2)
        producer = Transacting(lab.client())
        assert await producer.init() is ErrorCode.none
        assert await producer.commit_offset(400, "exactly-once") is ErrorCode.none
        assert await producer.end() is ErrorCode.none
        await lab.crash()
        assert (await committed(lab, "t"), await committed(lab, "t", "exactly-once")) == (-1, 400)


async def test_a_waiting_commit_in_a_transaction_is_refused_when_its_topic_is_deleted() -> None:
    async with open_lab() as lab:
        await lab.create_topic("t", 2)
        producer = Transacting(lab.client())
        assert await producer.init() is ErrorCode.none
        with held_appends(lab.broker.transactions.topic):
            committing = asyncio.ensure_future(producer.commit_offset(10, GROUP))
            await settle()
            await lab.delete_topic("t")
        assert await committing is ErrorCode.unknown_topic_or_partition
        assert await producer.end() is ErrorCode.none
        await lab.create_topic("t", 2)
        assert await committed(lab, "t") == -1


@contextmanager
def held_appends(topic: InternalTopic) -> Generator[None]:
    """Appends to the topic wait until the end of the block."""
    held: list[tuple[Append, int, list[tuple[bytes, bytes | None]]]] = []

    def hold(partition: int, records: list[tuple[bytes, bytes | None]], *_: object) -> Append:
        held.append((Append(), partition, records))
        return held[-1][0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(topic, "append", hold)
        yield
    for append, partition, records in held:
        append.complete(topic.append(partition, records).result())
