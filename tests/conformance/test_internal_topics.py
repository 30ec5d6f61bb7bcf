"""The broker's own topics: created by a look-up or by an administrator, whose number of partitions counts."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.coordinator.replay.key_partition import partition_of_key
from barnabas.protocol.errors import ErrorCode
from tests.conformance.harness import INTERNAL_PARTITIONS, Lab, open_lab, settle
from tests.conformance.test_transaction_requests import ID, add_partitions, initialised

OFFSETS, TRANSACTIONS, SHARE_STATE = "__consumer_offsets", "__transaction_state", "__share_group_state"
TOPICS = (OFFSETS, TRANSACTIONS, SHARE_STATE)
GROUPS = [f"group-{number}" for number in range(12)]
OK = ErrorCode.none


def counts(lab: Lab) -> dict[str, int]:
    topics = lab.broker.metadata.image.topics_by_name
    return {name: len(topics[name].partitions) for name in TOPICS if name in topics}


async def create(lab: Lab, name: str, partition_count: int) -> ErrorCode:
    topic = {"name": name, "num_partitions": partition_count, "replication_factor": -1}
    topic |= {"assignments": [], "configs": []}
    (result,) = (await lab.admin.ask("create_topics", topics=[topic])).topics
    code: ErrorCode = result.error_code
    return code


async def commit(lab: Lab, group: str, offset: int) -> ErrorCode:
    partition = {"partition_index": 0, "committed_offset": offset}
    topics = [{"name": "t", "partitions": [partition]}]
    answer = await lab.admin.ask("offset_commit", 2, group_id=group, topics=topics)
    code: ErrorCode = answer.topics[0].partitions[0].error_code
    return code


async def committed(lab: Lab, group: str) -> int:
    topics = [{"name": "t", "partition_indexes": [0]}]
    answer = await lab.admin.ask("offset_fetch", 5, group_id=group, topics=topics)
    offset: int = answer.topics[0].partitions[0].committed_offset
    return offset


@pytest.mark.parametrize("key_type", [0, 1])
async def test_a_look_up_creates_the_topic_with_the_settings_number_of_partitions(key_type: int) -> None:
    given = {"offsets__topic__num__partitions": "7", "transaction__state__log__num__partitions": "5"}
    async with open_lab(**given) as lab:
        asked = {"key_type": key_type, "coordinator_keys": ["one"]}
        (found,) = (await lab.admin.ask("find_coordinator", None, **asked)).coordinators
        assert found.error_code is OK
        assert counts(lab) == ({OFFSETS: 7} if key_type == 0 else {TRANSACTIONS: 5})


async def test_an_administrators_number_of_partitions_counts_at_once_and_after_restarts() -> None:
    async with open_lab() as lab:
        await lab.create_topic()
        assert await create(lab, OFFSETS, 3) is OK
        assert [await commit(lab, group, 5) for group in GROUPS] == [OK] * len(GROUPS)
        for _ in range(2):
            assert counts(lab) == {OFFSETS: 3}
            assert [await committed(lab, group) for group in GROUPS] == [5] * len(GROUPS)
            assert {lab.broker.groups.partition_of(group) for group in GROUPS} == {0, 1, 2}
            await lab.restart()


async def test_an_existing_topic_keeps_its_number_under_any_setting() -> None:
    async with open_lab() as lab:
        await lab.create_topic()
        await commit(lab, GROUPS[0], 5)
        assert counts(lab) == {OFFSETS: INTERNAL_PARTITIONS}
        lab.given["offsets.topic.num.partitions"] = "3"
        await lab.restart()
        assert counts(lab) == {OFFSETS: INTERNAL_PARTITIONS}
        assert await committed(lab, GROUPS[0]) == 5
        assert await create(lab, OFFSETS, 3) is ErrorCode.topic_already_exists


@pytest.mark.parametrize("asked", [1, 3, -1])
async def test_all_internal_topics_may_be_created(asked: int) -> None:
    async with open_lab(share__state__store="topic") as lab:
        for name in TOPICS:
            assert await create(lab, name, asked) is OK
        expected = 1 if asked == -1 else asked
        assert counts(lab) == dict.fromkeys(TOPICS, expected)
        assert lab.broker.groups.operations.partition_count == expected
        assert lab.broker.transactions.coordinator.partition_count == expected
        assert lab.broker.share_state is not None
        assert lab.broker.share_state.coordinator.partition_count == expected
        await lab.create_topic()
        await initialised(lab)
        assert await commit(lab, GROUPS[0], 5) is OK


async def test_settings_that_the_administrator_leaves_out_get_the_brokers_values() -> None:
    async with open_lab() as lab:
        await create(lab, OFFSETS, 3)
        assert lab.broker.effective_config.topic_config(OFFSETS).compact_enabled


@pytest.mark.parametrize("turns", range(4))
async def test_commits_during_the_topics_creation_are_accepted_or_refused(turns: int) -> None:
    async with open_lab() as lab:
        await lab.create_topic()
        made = asyncio.ensure_future(create(lab, OFFSETS, 3))
        for _ in range(turns):
            await asyncio.sleep(0)
        codes = await asyncio.gather(*(commit(lab, group, 5) for group in GROUPS))
        await made
        assert set(codes) <= {OK, ErrorCode.coordinator_load_in_progress, ErrorCode.coordinator_not_available}
        await settle()
        for group, code in zip(GROUPS, codes, strict=True):
            assert await committed(lab, group) == (5 if code is OK else -1)
        await lab.restart()
        for group, code in zip(GROUPS, codes, strict=True):
            assert await committed(lab, group) == (5 if code is OK else -1)


async def test_a_transaction_names_the_partition_that_the_topic_really_has() -> None:
    async with open_lab() as lab:
        await create(lab, OFFSETS, 3)
        producer = await initialised(lab)
        assert (await lab.admin.ask("add_offsets_to_txn", 3, **producer, group_id=GROUPS[0])).error_code is OK
        (described,) = lab.broker.transactions.coordinator.describe(ID).partitions
        assert described == (OFFSETS, partition_of_key(GROUPS[0], 3))


async def test_a_transaction_makes_the_topic_before_it_names_a_partition() -> None:
    async with open_lab(offsets__topic__num__partitions="3") as lab:
        producer = await initialised(lab)
        assert await add_partitions(lab, producer, 3, OFFSETS) == [ErrorCode.unknown_topic_or_partition]
        await lab.admin.ask("add_offsets_to_txn", 3, **producer, group_id=GROUPS[0])
        assert counts(lab)[OFFSETS] == 3
