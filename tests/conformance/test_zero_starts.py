"""A group that begins on a partition without records begins at offset 0, and the first record has offset 0
(decision 20): after restarts and crashes, resets and deletions, for several groups and for transactions.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from uuid import UUID

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import SharePartitionKey, TopicIdPartition
from tests.conformance.conftest import with_log_store_only
from tests.conformance.crash_flows import Flow, Told, check_everywhere
from tests.conformance.harness import Lab, Pending, open_lab, settle
from tests.conformance.share_member import ACCEPT, ShareMember
from tests.conformance.transacting import begun, ends

OK = ErrorCode.none
TOPIC = "t"

End = Callable[[Lab], Awaitable[None]]
ENDS: dict[str, End] = {"restart": Lab.restart, "crash": Lab.crash, "power loss": Lab.lose_power}


def open_durable_lab() -> AbstractAsyncContextManager[Lab]:
    """A broker whose answers survive a loss of power."""
    return open_lab(log__flush="always")


async def new_topic(lab: Lab, policy: str = "latest", *groups: str) -> TopicIdPartition:
    for group_id in groups or ("group",):
        await lab.configure_group(group_id, auto_offset_reset=policy)
    return TopicIdPartition(await lab.create_topic(TOPIC), 0)


async def waiting_member(lab: Lab, partition: TopicIdPartition, group_id: str = "group") -> ShareMember:
    """A member whose first fetch waits: its group's start is decided."""
    member = ShareMember(lab.client(), [partition], group_id=group_id, member_id=f"member of {group_id}")
    await member.join(TOPIC)
    start_waiting(member)
    await settle()
    return member


def start_waiting(member: ShareMember) -> Pending:
    pending: Pending = member.start_fetch(max_wait=60_000)
    return pending


async def taken_after(
    lab: Lab, partition: TopicIdPartition, group_id: str = "group"
) -> list[tuple[int, int, int]]:
    """The records that a new member acquires first."""
    member = ShareMember(lab.client(), [partition], group_id=group_id, member_id="later")
    await member.join(TOPIC)
    taken = await member.take()
    if not taken:  # the start was undecided, and the first fetch has had it recorded
        await settle()
        taken = await member.take()
    return taken


async def lag_of(lab: Lab, partition: TopicIdPartition, group_id: str = "group") -> tuple[int, int]:
    return await lab.offsets(group_id, partition)


@pytest.mark.parametrize("policy", ["earliest", "latest"])
async def test_the_first_record_has_offset_0_though_a_consumer_waits(lab: Lab, policy: str) -> None:
    partition = await new_topic(lab, policy)
    member = ShareMember(lab.client(), [partition])
    await member.join(TOPIC)
    pending = start_waiting(member)
    await settle()
    await lab.produce(partition.topic_id, 3)
    await settle()
    assert pending.response().responses[0].partitions[0].acquired_records[0].first_offset == 0
    assert await lag_of(lab, partition) == (0, 3)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("policy", ["earliest", "latest"])
async def test_no_record_is_skipped_if_the_broker_ends_while_a_consumer_waits(policy: str, end: str) -> None:
    async with open_durable_lab() as lab:
        partition = await new_topic(lab, policy)
        await waiting_member(lab, partition)
        await ENDS[end](lab)
        await lab.produce(partition.topic_id, 2)
        assert await taken_after(lab, partition) == [(0, 1, 1)]


@pytest.mark.parametrize("end", ENDS)
async def test_no_record_is_skipped_if_the_broker_ends_with_records_that_were_not_fetched(end: str) -> None:
    async with open_durable_lab() as lab:
        partition = await new_topic(lab)
        member = await waiting_member(lab, partition)
        member.client.disconnect()
        await lab.produce(partition.topic_id, 2)
        await ENDS[end](lab)
        await lab.produce(partition.topic_id, 1)
        assert await taken_after(lab, partition) == [(0, 2, 1)]
        assert await lag_of(lab, partition) == (0, 3)


@pytest.mark.parametrize("end", ENDS)
async def test_the_first_decision_is_recorded_and_survives(end: str) -> None:
    async with open_durable_lab() as lab:
        partition = await new_topic(lab)
        member = ShareMember(lab.client(), [partition])
        await member.join(TOPIC)
        pending = start_waiting(member)
        await settle()
        await lab.produce(partition.topic_id, 3)
        await settle()
        assert pending.done
        await member.acknowledge([(0, 1, ACCEPT)])
        await settle()
        await ENDS[end](lab)
        assert await lag_of(lab, partition) == (2, 1)


async def test_each_group_records_its_own_start(lab: Lab) -> None:
    groups = [f"group-{number}" for number in range(5)]
    partition = await new_topic(lab, "latest", *groups)
    for group_id in groups:
        await waiting_member(lab, partition, group_id)
    await lab.restart()
    await lab.produce(partition.topic_id, 2)
    late = ShareMember(lab.client(), [partition], group_id="late", member_id="late")
    await late.join(TOPIC)
    assert await late.take() == []
    for group_id in groups:
        assert await taken_after(lab, partition, group_id) == [(0, 1, 1)]


async def test_many_partitions_begin_with_few_records_of_the_group(lab: Lab) -> None:
    topic_id = await lab.create_topic(TOPIC, 200)
    await lab.configure_group("group", auto_offset_reset="latest")
    member = ShareMember(lab.client(), [TopicIdPartition(topic_id, index) for index in range(200)])
    await member.join(TOPIC)
    groups = lab.broker.offsets_topic.topic
    before = groups.append_ms.count
    start_waiting(member)
    keys = [SharePartitionKey("group", topic_id, index) for index in range(200)]
    while not all(lab.broker.groups.share.starts_at_zero(key) for key in keys):
        await settle()
    assert groups.append_ms.count - before <= 2


@pytest.mark.parametrize("commit", [True, False])
async def test_the_first_batch_may_belong_to_a_transaction(lab: Lab, commit: bool) -> None:
    await lab.configure_group("group", isolation_level="read_committed")
    partition = await new_topic(lab)
    member = await waiting_member(lab, partition)
    producer = await begun(lab)
    assert await producer.end(commit=commit) is OK
    await lab.restart()
    await lab.produce(partition.topic_id, 1)
    member = ShareMember(lab.client(), [partition])
    await member.join(TOPIC)
    taken = [offset for _ in range(2) for offset, _, _ in await member.take(max_records=1)]
    _, high_watermark = await ends(lab)
    assert taken[0] == (0 if commit else high_watermark - 1)


async def test_records_that_an_administrator_deletes_are_passed_over(lab: Lab) -> None:
    partition = await new_topic(lab)
    await waiting_member(lab, partition)
    await lab.restart()
    await lab.produce(partition.topic_id, 5)
    asked = {"name": TOPIC, "partitions": [{"partition_index": 0, "offset": 3}]}
    answer = await lab.admin.ask("delete_records", topics=[asked])
    assert answer.topics[0].partitions[0].error_code is OK
    assert await taken_after(lab, partition) == [(3, 4, 1)]


async def test_a_reset_takes_the_place_of_the_recorded_start(lab: Lab) -> None:
    partition = await new_topic(lab)
    member = await waiting_member(lab, partition)
    await lab.produce(partition.topic_id, 4)
    await settle()
    await member.leave_session()
    await member.heartbeat(-1)
    topic = {"topic_name": TOPIC, "partitions": [{"partition_index": 0, "start_offset": 2}]}
    await lab.admin.ask("alter_share_group_offsets", group_id="group", topics=[topic])
    await settle()
    assert not lab.broker.groups.share.starts_at_zero(SharePartitionKey("group", *partition))
    await lab.restart()
    assert [first for first, _, _ in await taken_after(lab, partition)] == [2]


@pytest.mark.parametrize("what", ["offsets", "group"])
async def test_a_deletion_forgets_the_recorded_start(lab: Lab, what: str) -> None:
    partition = await new_topic(lab)
    member = await waiting_member(lab, partition)
    await member.leave_session()
    await member.heartbeat(-1)
    if what == "offsets":
        topics = [{"topic_name": TOPIC}]
        await lab.admin.ask("delete_share_group_offsets", group_id="group", topics=topics)
    else:
        await lab.admin.ask("delete_groups", groups_names=["group"])
    await settle()
    await lab.restart()
    await lab.produce(partition.topic_id, 3)
    assert await taken_after(lab, partition) == [], "the policy `latest` decides anew"


async def test_an_added_partition_is_read_from_its_first_record(lab: Lab) -> None:
    partition = await new_topic(lab)
    member = await waiting_member(lab, partition)
    await lab.admin.ask("create_partitions", topics=[{"name": TOPIC, "count": 2}])
    await lab.advance(1_000)
    await member.heartbeat(2)
    added = TopicIdPartition(partition.topic_id, 1)
    await lab.produce(partition.topic_id, 2, partition=1)
    await lab.restart()
    assert await taken_after(lab, added) == [(0, 1, 1)]


async def test_a_partition_that_has_held_records_keeps_to_the_policy(lab: Lab) -> None:
    partition = await new_topic(lab)
    await lab.produce(partition.topic_id, 3)
    assert await taken_after(lab, partition) == []
    await lab.produce(partition.topic_id, 1)
    assert [last for _, last, _ in await taken_after(lab, partition)] != []
    assert not lab.broker.groups.share.starts_at_zero(SharePartitionKey("group", *partition))


async def test_a_start_that_could_not_be_recorded_stands_while_the_broker_runs(lab: Lab) -> None:
    partition = await new_topic(lab)
    member = ShareMember(lab.client(), [partition])
    await member.join(TOPIC)
    groups = lab.broker.groups.partition_of("group")
    with lab.broken_disk(f"__consumer_offsets-{groups}"):
        start_waiting(member)
        await settle()
        await lab.produce(partition.topic_id, 5)
    again = ShareMember(lab.client(), [partition], member_id="again")
    while (await again.heartbeat(0, [TOPIC])).error_code is not OK:
        await settle()
    member.client.disconnect()
    await settle()
    taken = [one for _ in range(2) for one in await again.take()]
    assert [first for first, _, _ in taken] == [0]


async def test_a_start_chosen_again_is_not_overtaken_by_a_load() -> None:
    async with open_durable_lab() as lab:
        partition = await new_topic(lab)
        member = await waiting_member(lab, partition)
        await lab.produce(partition.topic_id, 4)
        await member.leave_session()
        await member.heartbeat(-1)
        await lab.restart()
        topic = {"topic_name": TOPIC, "partitions": [{"partition_index": 0, "start_offset": -1}]}
        asked = {"topic_name": TOPIC, "partitions": [0]}
        with lab.stalled_disk():
            alter = lab.client().send("alter_share_group_offsets", group_id="group", topics=[topic])
            await settle()
            describe = lab.client().send(
                "describe_share_group_offsets", groups=[{"group_id": "group", "topics": [asked]}]
            )
            await settle()
            assert not alter.done
        assert (await lab.answered(alter)).responses[0].partitions[0].error_code is OK
        await lab.answered(describe)
        assert await taken_after(lab, partition) == [], "the policy `latest` decides anew"


async def test_a_fetch_of_few_records_begins_in_all_partitions_first(lab: Lab) -> None:
    """Otherwise a group with the policy `latest` would miss the records in those that it did not look at."""
    await lab.configure_group("group", auto_offset_reset="latest")
    topic_id = await lab.create_topic(TOPIC, 2)
    zero, one = TopicIdPartition(topic_id, 0), TopicIdPartition(topic_id, 1)
    for index in range(2):
        await lab.produce(topic_id, 1, partition=index)
    first = ShareMember(lab.client(), [zero], member_id="first")
    await first.join(TOPIC)
    assert await first.take() == []
    await lab.produce(topic_id, *[1] * 5)
    second = ShareMember(lab.client(), [zero, one], member_id="second")
    await second.join(TOPIC)
    assert [last - first for first, last, _ in await second.take(max_records=1)] == [0]
    await settle()
    await lab.produce(topic_id, 2, partition=1)
    third = ShareMember(lab.client(), [one], member_id="third")
    await third.join(TOPIC)
    assert [last - first for first, last, _ in await third.take()] == [1]


class EmptyBeginning(Flow):
    """A consumer waits on an empty partition; then records arrive, and one of them is accepted."""

    async def prepare(self, lab: Lab) -> None:
        await super().prepare(lab)
        await lab.configure_group("group", auto_offset_reset="latest")
        partition = TopicIdPartition(self.told["topic_id"], 0)
        self._member = ShareMember(lab.client(), [partition])
        await self._member.join(TOPIC)

    async def run(self, lab: Lab) -> None:
        pending = start_waiting(self._member)
        await settle()
        self.told["waits"] = True
        await lab.produce(self.told["topic_id"], 3)
        self.told["produced"] = True
        await settle()
        assert pending.done
        self.told["sent"] = True
        await self._member.acknowledge([(0, 0, ACCEPT)])
        self.told["accepted"] = True

    async def check(self, lab: Lab, told: Told) -> None:
        topic_id: UUID = told["topic_id"]
        partition = TopicIdPartition(topic_id, 0)
        await lab.produce(topic_id, 1)
        taken = [offset for first, last, _ in await taken_after(lab, partition) for offset in (first, last)]
        if told.get("accepted"):
            assert taken[0] == 1
        elif told.get("sent"):
            assert taken[0] in (0, 1)
        elif told.get("waits"):
            assert taken[0] == 0


@with_log_store_only
@pytest.mark.parametrize("flush", ["interval", "always"])
async def test_no_record_is_skipped_or_delivered_again_after_a_crash_at_any_step(
    flush: str,
) -> None:
    await check_everywhere(EmptyBeginning(), flush)
