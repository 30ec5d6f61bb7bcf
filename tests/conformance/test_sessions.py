"""Share sessions (wire sheet, section 4)."""

from uuid import UUID

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from tests.conformance.conftest import Stage
from tests.conformance.harness import Lab, open_lab, partitions_of, settle
from tests.conformance.share_member import ACCEPT, GROUP, ShareMember, fetched

NOT_FOUND = ErrorCode.share_session_not_found
WRONG_EPOCH = ErrorCode.invalid_share_session_epoch
INVALID = ErrorCode.invalid_request


@pytest.mark.parametrize(
    ("epoch", "with_session", "error"),
    [
        (0, False, ErrorCode.none),
        (0, True, ErrorCode.none),
        (1, False, NOT_FOUND),
        (1, True, ErrorCode.none),
        (2, True, WRONG_EPOCH),
        (7, False, NOT_FOUND),
        (-1, False, NOT_FOUND),
        (-1, True, ErrorCode.none),
    ],
)
async def test_a_fetch_needs_the_epoch_of_its_session(
    stage: Stage, epoch: int, with_session: bool, error: ErrorCode
) -> None:
    member = stage.member()
    if with_session:
        await member.fetch()
    got = await member.fetch(epoch=epoch)
    assert got.error == error
    if error is not ErrorCode.none:
        assert (got.lock_ms, got.partitions) == (0, {})


@pytest.mark.parametrize(
    ("epoch", "with_session", "error"),
    [
        (0, False, WRONG_EPOCH),
        (0, True, WRONG_EPOCH),
        (1, False, NOT_FOUND),
        (1, True, ErrorCode.none),
        (2, True, WRONG_EPOCH),
        (-1, False, NOT_FOUND),
        (-1, True, ErrorCode.none),
    ],
)
async def test_an_acknowledgement_needs_the_epoch_of_its_session(
    stage: Stage, epoch: int, with_session: bool, error: ErrorCode
) -> None:
    await stage.produce(1)
    member = stage.member()
    if with_session:
        await member.take()
    got = await member.acknowledge([(0, 0, ACCEPT)], epoch=epoch)
    assert got.error == error
    assert got.partitions == ({} if error is not ErrorCode.none else {stage.partition: 0})


async def test_fetch_and_acknowledge_share_one_epoch(stage: Stage) -> None:
    await stage.produce(3)
    member = stage.member()
    await member.take()
    await member.accept(0, 0)
    assert (await member.fetch(epoch=1)).error == WRONG_EPOCH
    assert (await member.fetch(epoch=2)).error == ErrorCode.none
    assert (await member.acknowledge([(1, 1, ACCEPT)], epoch=3)).errors == [0]


async def test_a_first_fetch_must_not_acknowledge(stage: Stage) -> None:
    await stage.produce(1)
    member = stage.member()
    await member.take()
    got = await member.fetch([(0, 0, ACCEPT)], epoch=0)
    assert got.error == INVALID
    assert (await member.fetch(epoch=1)).error == ErrorCode.none, "the session before is untouched"


async def test_the_epoch_is_used_up_though_a_partition_fails(stage: Stage) -> None:
    member = stage.member()
    await member.fetch()
    assert (await member.acknowledge([(0, 0, ACCEPT)])).errors == [ErrorCode.invalid_record_state]
    assert (await member.fetch(epoch=1)).error == WRONG_EPOCH
    assert (await member.fetch(epoch=2)).error == ErrorCode.none


async def test_a_new_session_keeps_the_members_records(stage: Stage) -> None:
    await stage.produce(2)
    member = stage.member()
    assert await member.take() == [(0, 1, 1)]
    assert await member.take(epoch=0) == []
    await member.accept(0, 1)
    assert await stage.offsets() == (2, 0)


@pytest.mark.parametrize("by_acknowledge", [True, False])
async def test_the_last_request_acknowledges_then_releases_with_an_unchanged_count(
    stage: Stage, by_acknowledge: bool
) -> None:
    await stage.produce(4)
    member = stage.member()
    assert await member.take() == [(0, 3, 1)]
    if by_acknowledge:
        assert (await member.acknowledge([(0, 1, ACCEPT)], epoch=-1)).errors == [0]
    else:
        got = await member.fetch([(0, 1, ACCEPT)], epoch=-1)
        assert (got.acknowledge_errors, got.acquired) == ([0], [])
    assert (await member.fetch(epoch=1)).error == NOT_FOUND
    assert await stage.member(2).take() == [(2, 3, 2)]


async def test_records_at_their_limit_are_archived_when_the_session_ends(stage: Stage) -> None:
    await stage.lab.configure_group(GROUP, delivery_count_limit=2)
    await stage.produce(1)
    for count in (1, 2):
        member = stage.member(count)
        assert await member.take() == [(0, 0, count)]
        await member.leave_session()
    assert await stage.member(3).take() == []
    assert await stage.offsets() == (1, 0)


async def test_a_lost_connection_releases_the_records_of_its_session(stage: Stage) -> None:
    await stage.produce(2)
    member = stage.member()
    await member.take()
    member.client.disconnect()
    await settle()
    assert await stage.member(2).take() == [(0, 1, 2)]
    member.client = stage.lab.client()
    assert (await member.fetch()).error == NOT_FOUND


async def test_of_two_sessions_on_one_connection_the_last_one_is_lost_with_it(stage: Stage) -> None:
    client = stage.lab.client()
    first, second = [ShareMember(client, [stage.partition], member_id=f"shared-{n}") for n in (1, 2)]
    await first.fetch()
    await second.fetch()
    client.disconnect()
    first.client = second.client = stage.lab.client()
    assert (await first.fetch()).error == ErrorCode.none
    assert (await second.fetch()).error == NOT_FOUND


async def test_a_session_is_of_the_connection_that_opened_it(stage: Stage) -> None:
    await stage.produce(1)
    member = stage.member()
    await member.take()
    opener, member.client = member.client, stage.lab.client()
    assert (await member.fetch()).error == ErrorCode.none
    member.client.disconnect()
    member.client = opener
    await member.accept(0, 0)


async def test_anybody_may_fetch_in_a_group_without_being_its_member(stage: Stage) -> None:
    await stage.produce(1)
    assert await stage.member(99).take() == [(0, 0, 1)]


async def test_a_full_session_cache_is_reported_at_the_end_of_the_wait() -> None:
    async with open_lab(group__share__max__share__sessions="2", group__share__max__size="2") as lab:
        partition = TopicIdPartition(await lab.create_topic(), 0)
        members = [ShareMember(lab.client(), [partition], member_id=f"m{n}") for n in range(3)]
        for one in members[:2]:
            await one.fetch(max_wait=0)
        refused = members[2].start_fetch(epoch=0, max_wait=500)
        await lab.advance(499)
        assert not refused.done
        await lab.advance(1)
        assert fetched(refused.response()).error == ErrorCode.share_session_limit_reached
        at_once = members[2].start_fetch(epoch=0, max_wait=0)
        assert fetched(at_once.response()).error == ErrorCode.share_session_limit_reached
        await members[0].fetch(epoch=-1)
        assert (await members[2].fetch(epoch=0)).error == ErrorCode.none


class TestPartitionsOfASession:
    async def test_the_first_answer_names_all_partitions_and_later_ones_those_with_news(
        self, lab: Lab
    ) -> None:
        topic_id = await lab.create_topic("t", 2)
        both = list(partitions_of(topic_id, 2))
        await lab.configure_group(GROUP, auto_offset_reset="earliest")
        member = ShareMember(lab.client(), both)
        await member.join("t")
        assert set((await member.fetch()).partitions) == set(both)
        assert (await member.fetch()).partitions == {}
        await lab.produce(topic_id, 1, partition=1)
        assert set((await member.fetch()).partitions) == {both[1]}
        got = await member.fetch({both[0]: [(0, 0, ACCEPT)]})
        assert set(got.partitions) == {both[0]}

    async def test_added_partitions_are_answered_once_and_forgotten_ones_no_more(self, lab: Lab) -> None:
        topic_id = await lab.create_topic("t", 2)
        zero, one = partitions_of(topic_id, 2)
        await lab.configure_group(GROUP, auto_offset_reset="earliest")
        member = ShareMember(lab.client(), [zero])
        await member.join("t")
        await member.fetch()
        assert set((await member.fetch(add=[one])).partitions) == {one}
        assert (await member.fetch(forget=[zero])).partitions == {}
        await lab.produce(topic_id, 1, partition=0)
        assert (await member.fetch()).acquired == []
        assert (await member.fetch(add=[zero])).acquired

    async def test_an_unknown_partition_is_an_error_until_it_is_forgotten(self, stage: Stage) -> None:
        unknown = TopicIdPartition(stage.partition.topic_id, 9)
        member = ShareMember(stage.lab.client(), [stage.partition, unknown])
        for _ in range(3):
            got = await member.fetch()
            assert got.partitions[unknown].error == ErrorCode.unknown_topic_or_partition
        after = await member.fetch(forget=[unknown])
        assert unknown not in after.partitions

    async def test_an_unknown_topic_is_its_own_error_and_others_go_on(self, stage: Stage) -> None:
        await stage.produce(1)
        unknown = TopicIdPartition(UUID(int=1), 0)
        member = ShareMember(stage.lab.client(), [unknown, stage.partition])
        got = await member.fetch()
        assert got.error == ErrorCode.none
        assert got.partitions[unknown].error == ErrorCode.unknown_topic_id
        assert got.partitions[stage.partition].acquired == [(0, 0, 1)]

    @pytest.mark.parametrize("in_a_fetch", [True, False])
    async def test_an_acknowledgement_before_the_start_does_not_end_the_search_for_it(
        self, lab: Lab, in_a_fetch: bool
    ) -> None:
        await lab.configure_group(GROUP, auto_offset_reset="by_duration:PT1H")
        partition = TopicIdPartition(await lab.create_topic(), 0)
        member = ShareMember(lab.client(), [partition])
        await member.join("t")
        await member.fetch()  # starts the search for the group's start offset
        acknowledge = member.fetch if in_a_fetch else member.acknowledge
        await acknowledge([(0, 0, ACCEPT)])  # refused: there is no such record
        await lab.produce(partition.topic_id, 3)
        assert await member.take() == [(0, 2, 1)]

    async def test_a_partition_is_answered_once_more_after_its_error(self, lab: Lab) -> None:
        await lab.configure_group(GROUP, auto_offset_reset="by_duration:PT1H")
        partition = TopicIdPartition(await lab.create_topic(), 0)
        member = ShareMember(lab.client(), [partition])
        await member.join("t")
        await member.fetch()  # starts the search for the group's start offset
        await settle()
        got = await member.fetch()
        assert got.partitions[partition].error == ErrorCode.offset_not_available
        await lab.produce(partition.topic_id, 1)
        got = await member.fetch()  # starts the search again
        assert (got.partitions[partition].error, got.acquired) == (ErrorCode.none, [])
        await settle()
        assert await member.take() == [(0, 0, 1)]
        assert (await member.fetch()).partitions == {}

    async def test_an_acknowledgement_may_name_partitions_outside_of_the_session(self, stage: Stage) -> None:
        await stage.produce(1)
        member = stage.member()
        await member.take()
        await member.fetch(forget=[stage.partition])
        assert (await member.acknowledge([(0, 0, ACCEPT)])).errors == [0]

    async def test_a_fetch_may_acknowledge_a_partition_and_forget_it(self, stage: Stage) -> None:
        """The Java client of Apache Kafka 4.4 does so for a partition that was revoked."""
        await stage.produce(1, 1)
        member = stage.member()
        await member.take(max_records=1)
        got = await member.fetch([(0, 0, ACCEPT)], forget=[stage.partition])
        assert got.partitions[stage.partition].acknowledge_error == ErrorCode.none
        assert got.acquired == []
        assert (await member.fetch()).partitions == {}
        assert [first for first, _, _ in await stage.member(2).take()] == [1]

    async def test_the_fetch_that_closes_an_empty_session_ends_it(self, stage: Stage) -> None:
        """The Java client of Apache Kafka 4.4 does so when its last partition is gone."""
        member = stage.member()
        await member.fetch()
        await member.fetch(forget=[stage.partition])
        closed = await member.fetch(epoch=-1)
        assert (closed.error, closed.partitions) == (ErrorCode.none, {})
        assert (await member.fetch(epoch=2)).error == NOT_FOUND

    async def test_forgotten_partitions_keep_their_locks_until_they_time_out(self, stage: Stage) -> None:
        await stage.produce(1)
        member = stage.member()
        await member.take()
        await member.fetch(forget=[stage.partition])
        await member.leave_session()
        assert await stage.member(2).take() == []
        await stage.lab.advance(30_000)
        assert await stage.member(3).take() == [(0, 0, 2)]

    async def test_partitions_take_turns_to_be_first(self, lab: Lab) -> None:
        topic_id = await lab.create_topic("t", 3)
        partitions = list(partitions_of(topic_id, 3))
        await lab.configure_group(GROUP, auto_offset_reset="earliest")
        member = ShareMember(lab.client(), partitions)
        await member.join("t")
        for index in range(3):
            await lab.produce(topic_id, *[1] * 5, partition=index)
        served: list[int] = []
        for _ in range(4):
            got = await member.fetch(max_records=1)
            served += [one.partition for one, answer in got.partitions.items() if answer.acquired]
        # A partition that returned records goes to the end of the session. Apache Kafka also turns the
        # order by the epoch, and would serve 0, 2, 2 and 1 (decision 5).
        assert served == [0, 1, 2, 0]
