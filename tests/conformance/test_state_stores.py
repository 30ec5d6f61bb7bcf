"""The promises of both stores when state ends, and the broker's reaction to state in the other store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from barnabas.storage.errors import InvalidDirectory
from tests.conformance.conftest import Stage, make_stage
from tests.conformance.harness import Lab, Pending, open_lab, settle
from tests.conformance.share_member import ACCEPT, GROUP, RELEASE, ShareMember

OTHER_STORE = {"log": "topic", "topic": "log"}

End = Callable[[Stage], Awaitable[None]]


async def nothing(stage: Stage) -> None:
    """The broker continues to run."""


async def close(stage: Stage) -> None:
    await stage.lab.restart()


async def kill(stage: Stage) -> None:
    await stage.lab.crash()


with_each_end = pytest.mark.parametrize("end", [nothing, close, kill])


async def used(stage: Stage) -> None:
    """Four of six records are accepted and one was released; the group has no members left."""
    await stage.produce(6)
    member = stage.member()
    await member.take()
    await member.acknowledge([(0, 2, ACCEPT), (4, 4, ACCEPT), (5, 5, RELEASE)])
    await member.leave_session()
    await member.heartbeat(-1)


async def taken_anew(stage: Stage, partition: TopicIdPartition) -> list[tuple[int, int, int]]:
    """The records that a new group of the same name gets."""
    await stage.lab.configure_group(GROUP, auto_offset_reset="earliest")
    member = ShareMember(stage.lab.client(), [partition], member_id="another")
    await member.join("t")
    return await member.take()


class TestEnds:
    @with_each_end
    async def test_a_deleted_groups_state_is_gone_for_good(self, stage: Stage, end: End) -> None:
        await used(stage)
        await stage.lab.admin.ask("delete_groups", groups_names=[GROUP])
        await end(stage)
        assert await stage.offsets() == (-1, -1)
        await stage.member(2).join("t")
        assert await stage.offsets() == (-1, -1)
        await end(stage)
        assert await taken_anew(stage, stage.partition) == [(0, 5, 1)]

    @with_each_end
    async def test_deleted_offsets_are_gone_for_good(self, stage: Stage, end: End) -> None:
        await used(stage)
        await stage.lab.admin.ask("delete_share_group_offsets", group_id=GROUP, topics=[{"topic_name": "t"}])
        await end(stage)
        assert await stage.offsets() == (-1, -1)
        assert await taken_anew(stage, stage.partition) == [(0, 5, 1)]

    @with_each_end
    async def test_a_deleted_topics_state_is_gone_and_one_of_its_name_begins_anew(
        self, stage: Stage, end: End
    ) -> None:
        await used(stage)
        await stage.lab.delete_topic("t")
        await end(stage)
        made_again = TopicIdPartition(await stage.lab.create_topic("t"), 0)
        await stage.lab.produce(made_again.topic_id, 3)
        assert await stage.lab.offsets(GROUP, made_again) == (-1, -1)
        await end(stage)
        assert await taken_anew(stage, made_again) == [(0, 2, 1)]

    async def test_nothing_is_kept_of_deleted_topics_and_groups(self, stage: Stage) -> None:
        await used(stage)
        if stage.lab.broker.share_state is None:
            return
        states = stage.lab.broker.share_state.coordinator.states
        assert len(states()) == 1
        await stage.lab.delete_topic("t")
        assert not states()
        again = TopicIdPartition(await stage.lab.create_topic("t"), 0)
        await stage.lab.produce(again.topic_id, 1)
        await taken_anew(stage, again)
        assert len(states()) == 1
        await ShareMember(stage.lab.client(), member_id="another").heartbeat(-1)
        await stage.lab.admin.ask("delete_groups", groups_names=[GROUP])
        assert not states()

    async def test_another_groups_state_stays(self, stage: Stage) -> None:
        await stage.lab.configure_group("other", auto_offset_reset="earliest")
        other = ShareMember(stage.lab.client(), [stage.partition], group_id="other")
        await other.join("t")
        await used(stage)
        await other.take()
        await other.accept(0, 1)
        await stage.lab.admin.ask("delete_groups", groups_names=[GROUP])
        await stage.lab.crash()
        assert await stage.lab.offsets("other", stage.partition) == (2, 4)

    @with_each_end
    async def test_an_offset_beyond_the_log_holds_unless_another_log_has_it_and_the_broker_starts_again(
        self, stage: Stage, end: End
    ) -> None:
        """Another log cannot tell it from a state of lost records, and skips no new record (decision 9)."""
        await used(stage)
        altered = {"topic_name": "t", "partitions": [{"partition_index": 0, "start_offset": 100}]}
        await stage.lab.admin.ask("alter_share_group_offsets", group_id=GROUP, topics=[altered])
        await end(stage)
        assert await stage.member(2).take() == []
        falls_back = stage.lab.broker.share_state is not None and end is not nothing
        assert (await stage.offsets())[0] == (6 if falls_back else 100)
        await stage.produce(3)
        assert await stage.member(3).take() == ([(6, 8, 1)] if falls_back else [])


class TestAResetDuringAWrite:
    """The answer holds against all earlier decisions that were not recorded."""

    async def begun(self, lab: Lab) -> tuple[Stage, ShareMember]:
        """A client that is no longer a member holds ten records; the group's epoch will not change."""
        stage = await make_stage(lab)
        await stage.produce(10)
        await stage.member().heartbeat(-1)
        await lab.answered(self.start_reset(stage, 0))
        member = stage.member(2)
        assert await member.take() == [(0, 9, 1)]
        return stage, member

    def start_reset(self, stage: Stage, start_offset: int) -> Pending:
        partition = {"partition_index": 0, "start_offset": start_offset}
        altered = {"topic_name": "t", "partitions": [partition]}
        return stage.lab.admin.send("alter_share_group_offsets", group_id=GROUP, topics=[altered])

    async def test_no_earlier_acknowledgement_is_recorded_after_it(self) -> None:
        async with open_lab(log__flush="always") as lab:
            stage, member = await self.begun(lab)
            with lab.stalled_disk():
                for ranges in ([(0, 2, ACCEPT)], [(3, 6, ACCEPT)]):
                    member.start_acknowledge(ranges)
                    await settle()
                pending = self.start_reset(stage, 0)
                await settle()
            await lab.answered(pending)
            await settle()
            assert await stage.offsets() == (0, 10)
            await lab.crash()
            assert await stage.offsets() == (0, 10)

    async def test_no_earlier_log_start_is_recorded_after_it(self) -> None:
        async with open_lab(log__flush="always") as lab:
            stage, member = await self.begun(lab)
            log = lab.broker.logs.get(lab.broker.metadata.image.topics_by_name["t"], 0)
            assert log is not None
            with lab.stalled_disk():
                member.start_acknowledge([(0, 2, ACCEPT)])
                await settle()
                pending = self.start_reset(stage, 8)
                await settle()
                log.delete_records(6)
            await lab.answered(pending)
            await settle()
            assert await stage.offsets() == (8, 2)
            await lab.crash()
            assert await stage.offsets() == (8, 2)


class TestTheOtherStore:
    async def started_with_the_other_store(self, lab: Lab) -> None:
        await lab.broker.close()
        lab.use_store(OTHER_STORE[lab.store])
        await lab.start()

    async def test_state_in_the_other_store_is_refused_with_one_clear_line(self) -> None:
        lab = Lab({})
        await lab.start()
        stage = await make_stage(lab)
        await used(stage)
        was = lab.store
        with pytest.raises(InvalidDirectory) as refused:
            await self.started_with_the_other_store(lab)
        message = str(refused.value)
        assert f"share.state.store={was}" in message
        assert "\n" not in message
        lab.use_store(was)
        await lab.start()
        assert await stage.offsets() == (3, 2), "nothing has happened to it"
        await lab.broker.close()

    async def test_state_in_the_other_store_is_refused_after_a_kill_too(self) -> None:
        lab = Lab({})
        await lab.start()
        await used(await make_stage(lab))
        left = lab.filesystem.copy()
        await lab.broker.close()
        lab.filesystem = left
        lab.use_store(OTHER_STORE[lab.store])
        with pytest.raises(InvalidDirectory):
            await lab.start()

    async def test_without_groups_the_store_may_change(self) -> None:
        async with open_lab() as lab:
            await lab.create_topic("t")
            await self.started_with_the_other_store(lab)
            await lab.delete_topic("t")
            stage = await make_stage(lab)
            await stage.produce(2)
            assert await stage.member().take() == [(0, 1, 1)]

    async def test_deleted_groups_leave_no_state_so_the_store_may_change_back_and_forth(
        self,
    ) -> None:
        async with open_lab() as lab:
            stage = await make_stage(lab)
            for _ in range(3):
                member = ShareMember(lab.client(), [stage.partition], member_id="round")
                await member.join("t")
                await stage.produce(2)
                acquired = await member.take()
                assert acquired
                await member.accept(acquired[0][0], acquired[0][0])
                await member.leave_session()
                for leaving in ("round", "member-1"):
                    await ShareMember(lab.client(), member_id=leaving).heartbeat(-1)
                response = await lab.admin.ask("delete_groups", groups_names=[GROUP])
                assert response.results[0].error_code is ErrorCode.none
                await self.started_with_the_other_store(lab)
                await lab.configure_group(GROUP, auto_offset_reset="earliest")

    async def test_a_group_that_has_only_joined_holds_no_state_in_a_log(self) -> None:
        """The change of store is not refused either: the group starts undecided with both stores."""
        lab = Lab({"share.state.store": "log"})
        await lab.start()
        stage = await make_stage(lab)
        await self.started_with_the_other_store(lab)
        await stage.produce(2)
        # The first fetch initialises its state.
        await stage.member(2).fetch()
        await settle()
        assert await stage.member().take() == [(0, 1, 1)]
        await lab.broker.close()
