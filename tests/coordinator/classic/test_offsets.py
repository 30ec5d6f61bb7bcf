"""Committed offsets: who may commit, what is told, when offsets end."""

from __future__ import annotations

from uuid import UUID

import pytest

from barnabas.coordinator.classic.committed_offset import CommittedOffset
from barnabas.coordinator.classic.group import ClassicGroupState
from barnabas.coordinator.classic.requests import MemberIdentity
from barnabas.coordinator.classic.settings import ClassicSettings
from barnabas.protocol.classic_group_records import NO_TOPIC_ID
from barnabas.protocol.errors import ApiError, ErrorCode
from tests.coordinator.classic.classic_bench import (
    GROUP,
    SESSION_MS,
    TOPIC,
    Bench,
    subscription,
)
from tests.coordinator.classic.share_groups import make_share_group
from tests.coordinator.simulated_log import error_of

RETENTION_MS = 100_000
SHORT = ClassicSettings(offsets_retention_ms=RETENTION_MS, offsets_retention_check_interval_ms=1_000)


class TestCommitting:
    def test_makes_a_simple_group_where_there_is_none(self) -> None:
        bench = Bench()
        assert bench.start_commit(7).result() == [ErrorCode.none]
        assert bench.committed() == 7
        assert bench.groups.list_groups()[0] == (GROUP, "", "Empty", "classic")
        assert bench.classic.describe(GROUP).protocol_type == ""

    def test_is_for_members_of_this_generation(self) -> None:
        bench = Bench()
        (member,) = bench.stable()
        assert bench.start_commit(9, member=member.identity, generation_id=1).result() == [ErrorCode.none]
        assert bench.committed() == 9

    @pytest.mark.parametrize(
        ("member_id", "generation_id", "code"),
        [
            ("", -1, ErrorCode.unknown_member_id),
            ("stranger", 1, ErrorCode.unknown_member_id),
            ("own", 0, ErrorCode.illegal_generation),
            ("own", -1, ErrorCode.illegal_generation),
        ],
    )
    def test_is_refused_to_others(self, member_id: str, generation_id: int, code: ErrorCode) -> None:
        bench = Bench()
        (member,) = bench.stable()
        identity = member.identity if member_id == "own" else MemberIdentity(member_id, None)
        assert error_of(bench.start_commit(member=identity, generation_id=generation_id)) is code
        assert bench.committed() is None

    def test_waits_for_the_assignment(self) -> None:
        bench = Bench()
        reply = bench.start_join(bench.new_member_id())
        bench.advance(0)
        identity = MemberIdentity(reply.result().member_id, None)
        code = error_of(bench.start_commit(member=identity, generation_id=1))
        assert code is ErrorCode.rebalance_in_progress

    def test_goes_on_while_members_join(self) -> None:
        bench = Bench()
        (member,) = bench.stable()
        bench.start_join(bench.new_member_id())
        assert bench.start_commit(3, member=member.identity, generation_id=1).result() == [ErrorCode.none]

    def test_keeps_the_member_in_its_group(self) -> None:
        bench = Bench()
        (member,) = bench.stable()
        for _ in range(3):
            bench.advance(SESSION_MS - 1)
            bench.start_commit(member=member.identity, generation_id=1).result()
        assert bench.heartbeat(member) is ErrorCode.none

    @pytest.mark.parametrize(
        ("group_id", "generation_id", "code"),
        [
            ("", -1, ErrorCode.invalid_group_id),
            ("absent", 3, ErrorCode.group_id_not_found),
            ("shared", -1, ErrorCode.group_id_not_found),
        ],
    )
    def test_needs_a_group(self, group_id: str, generation_id: int, code: ErrorCode) -> None:
        bench = Bench()
        bench.catalog.create(TOPIC)
        make_share_group(bench, "shared")
        assert error_of(bench.start_commit(group_id=group_id, generation_id=generation_id)) is code

    def test_with_too_much_metadata_fails_by_itself(self) -> None:
        bench = Bench()
        codes = bench.start_commit(metadata="m" * 4_097).result()
        assert codes == [ErrorCode.offset_metadata_too_large]
        assert bench.committed() is None

    def test_is_answered_when_it_is_written(self) -> None:
        bench = Bench()
        bench.log.held = True
        reply = bench.start_commit()
        assert not reply.done
        assert bench.committed() is None
        bench.log.release()
        assert reply.result() == [ErrorCode.none]
        assert bench.committed() == 5

    def test_that_cannot_be_written_changes_nothing(self) -> None:
        bench = Bench()
        bench.log.failing = True
        assert error_of(bench.start_commit()) is ErrorCode.coordinator_not_available
        assert bench.committed() is None
        assert bench.groups.list_groups() == []


class TestFetching:
    def test_tells_of_all_that_was_committed(self) -> None:
        bench = Bench()
        bench.start_commit(4, partitions=(0, 2), metadata="note").result()
        found = bench.classic.fetch_offsets(GROUP, None)
        assert [(one.topic_name, one.partition) for one in found] == [(TOPIC, 0), (TOPIC, 2)]
        assert found[0].committed == CommittedOffset(4, 3, "note", bench.wall_ms, log_offset=0)

    def test_knows_nothing_of_groups_that_are_not_there(self) -> None:
        assert Bench().committed(group_id="absent") is None

    def test_outlives_a_restart(self) -> None:
        bench = Bench()
        bench.start_commit(4).result()
        bench.start_commit(6).result()
        bench.restart()
        assert bench.committed() == 6
        assert bench.state() is ClassicGroupState.EMPTY

    def test_needs_the_groups_to_be_loaded(self) -> None:
        with pytest.raises(ApiError) as refused:
            Bench(loaded=False).committed()
        assert refused.value.code is ErrorCode.coordinator_load_in_progress


class TestDeleting:
    def test_an_offset_of_a_topic_that_members_read_is_refused(self) -> None:
        bench = Bench()
        (member,) = bench.stable()
        bench.start_commit(member=member.identity, generation_id=1).result()
        bench.start_commit(member=member.identity, generation_id=1, topic="other").result()
        codes = bench.classic.delete_offsets(GROUP, [(TOPIC, 0), ("other", 0), ("never", 0)]).result()
        assert codes == [ErrorCode.group_subscribed_to_topic, ErrorCode.none, ErrorCode.none]
        assert bench.committed("other") is None
        assert bench.committed() == 5

    def test_is_refused_while_there_are_members_that_are_no_consumers(self) -> None:
        bench = Bench()
        reply = bench.start_join(version=3, protocol_type="connect", protocols={"range": b""})
        bench.advance(0)
        bench.settle([reply])
        assert error_of(bench.classic.delete_offsets(GROUP, [])) is ErrorCode.non_empty_group

    def test_a_group_takes_its_offsets_along(self) -> None:
        bench = Bench()
        bench.start_commit(partitions=range(2_500)).result()
        bench.groups.delete_group(GROUP).result()
        bench.restart()
        assert bench.groups.list_groups() == []
        assert bench.classic.fetch_offsets(GROUP, None) == []

    def test_a_group_with_members_is_refused(self) -> None:
        bench = Bench()
        bench.stable()
        assert error_of(bench.groups.delete_group(GROUP)) is ErrorCode.non_empty_group

    def test_a_topic_takes_its_offsets_along_and_not_those_of_another_of_its_name(self) -> None:
        bench = Bench()
        old, new = UUID(int=1), UUID(int=2)
        bench.start_commit(1, topic_id=old).result()
        bench.start_commit(2, topic_id=new, partitions=(1,)).result()
        bench.groups.on_topics_deleted({TOPIC: old})
        assert (bench.committed(), bench.committed(partition=1)) == (None, 2)

    def test_an_earlier_topic_that_is_forgotten_late_leaves_those_of_unknown_ids(self) -> None:
        bench = Bench()
        earlier = UUID(int=1)
        bench.start_commit(1, topic_id=earlier).result()
        bench.start_commit(2, topic_id=NO_TOPIC_ID, partitions=(1,)).result()
        bench.classic.forget_topics({TOPIC: {earlier}})
        assert (bench.committed(), bench.committed(partition=1)) == (None, 2)


class TestManyOffsets:
    COUNT = 2_500

    def test_are_committed_all_or_none(self) -> None:
        bench = Bench()
        bench.start_commit(1, partitions=range(self.COUNT)).result()
        bench.start_commit(2, partitions=range(self.COUNT)).result()
        assert [len(batch.records) for batch in bench.log.batches] == [self.COUNT] * 2

    def test_go_with_their_group_all_or_none(self) -> None:
        bench = Bench()
        bench.start_commit(1, partitions=range(self.COUNT)).result()
        bench.groups.delete_group(GROUP).result()
        assert [len(batch.records) for batch in bench.log.batches] == [self.COUNT, self.COUNT + 1]


class TestRetention:
    def test_of_a_simple_group_counts_from_the_commit_and_takes_the_group_along(self) -> None:
        bench = Bench(SHORT)
        bench.start_commit().result()
        bench.advance(RETENTION_MS - 1_000)
        assert bench.committed() == 5
        bench.advance(2_000)
        assert bench.committed() is None
        assert bench.groups.list_groups() == []

    def test_of_a_group_that_was_left_counts_from_then(self) -> None:
        bench = Bench(SHORT)
        (member,) = bench.stable(1, session_ms=1_800_000)
        bench.start_commit(member=member.identity, generation_id=1).result()
        bench.advance(RETENTION_MS * 2)
        assert bench.committed() == 5
        bench.leave(member.identity)
        bench.advance(RETENTION_MS - 2_000)
        assert bench.committed() == 5
        bench.restart()
        bench.advance(4_000)
        assert bench.committed() is None

    def test_ends_offsets_of_topics_that_a_living_group_reads_no_more(self) -> None:
        bench = Bench(SHORT)
        (member,) = bench.stable(1, session_ms=1_800_000)
        for topic in (TOPIC, "former"):
            bench.start_commit(member=member.identity, generation_id=1, topic=topic).result()
        bench.advance(RETENTION_MS + 2_000)
        assert (bench.committed(), bench.committed("former")) == (5, None)
        assert bench.state() is ClassicGroupState.STABLE

    def test_never_ends_what_a_group_reads_of_which_nothing_is_known(self) -> None:
        bench = Bench(SHORT)
        (member,) = bench.stable(1, session_ms=1_800_000, protocols={"range": b"unreadable"})
        bench.start_commit(member=member.identity, generation_id=1).result()
        bench.advance(RETENTION_MS * 2)
        assert bench.committed() == 5

    def test_leaves_a_group_alone_that_somebody_is_about_to_join(self) -> None:
        bench = Bench(SHORT)
        bench.start_commit().result()
        bench.advance(RETENTION_MS - 500)
        member_id = bench.new_member_id()
        bench.advance(2_000)
        reply = bench.start_join(member_id, protocols={"range": subscription(TOPIC)})
        bench.advance(0)
        assert reply.result().error_code is ErrorCode.none
