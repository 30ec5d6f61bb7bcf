"""The rules of classic groups for offsets: who may commit and delete them, and when they expire."""

from __future__ import annotations

import pytest

from barnabas.coordinator.classic.group import ClassicGroupState
from barnabas.coordinator.group.member_identity import MemberIdentity
from barnabas.coordinator.offsets.settings import OffsetSettings
from barnabas.protocol.errors import ErrorCode
from tests.coordinator.classic.classic_bench import GROUP, SESSION_MS, TOPIC, Bench, subscription
from tests.coordinator.offsets.transactions import transactional_commit
from tests.coordinator.simulated_log import error_of

RETENTION_MS = 100_000
SHORT = OffsetSettings(retention_ms=RETENTION_MS, retention_check_interval_ms=1_000)


class TestCommitting:
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


class TestCommittingInATransaction:
    def test_is_for_members_of_this_generation_in_any_state_of_the_group(self) -> None:
        bench = Bench()
        (member,) = bench.stable()
        assert transactional_commit(bench, member=member.identity, generation_id=1).result() == [
            ErrorCode.none
        ]
        bench.start_join(bench.new_member_id())
        assert transactional_commit(bench, member=member.identity, generation_id=1).result() == [
            ErrorCode.none
        ]

    def test_is_for_producers_that_name_no_member(self) -> None:
        bench = Bench()
        bench.stable()
        assert transactional_commit(bench).result() == [ErrorCode.none]

    @pytest.mark.parametrize(
        ("member_id", "generation_id", "code"),
        [
            ("stranger", 1, ErrorCode.unknown_member_id),
            ("own", 0, ErrorCode.illegal_generation),
            ("own", -1, ErrorCode.illegal_generation),
            ("", 1, ErrorCode.unknown_member_id),
        ],
    )
    def test_is_refused_to_other_clients(self, member_id: str, generation_id: int, code: ErrorCode) -> None:
        bench = Bench()
        (member,) = bench.stable()
        identity = member.identity if member_id == "own" else MemberIdentity(member_id, None)
        assert error_of(transactional_commit(bench, member=identity, generation_id=generation_id)) is code

    def test_is_refused_in_a_generation_of_an_unknown_group(self) -> None:
        assert error_of(transactional_commit(Bench(), generation_id=3)) is ErrorCode.illegal_generation


class TestDeleting:
    def test_an_offset_of_a_topic_that_members_read_is_refused(self) -> None:
        bench = Bench()
        (member,) = bench.stable()
        bench.start_commit(member=member.identity, generation_id=1).result()
        bench.start_commit(member=member.identity, generation_id=1, topic="other").result()
        codes = bench.offsets.delete(GROUP, [(TOPIC, 0), ("other", 0), ("never", 0)]).result()
        assert codes == [ErrorCode.group_subscribed_to_topic, ErrorCode.none, ErrorCode.none]
        assert bench.committed("other") is None
        assert bench.committed() == 5

    def test_is_refused_while_there_are_members_that_are_no_consumers(self) -> None:
        bench = Bench()
        reply = bench.start_join(version=3, protocol_type="connect", protocols={"range": b""})
        bench.advance(0)
        bench.settle([reply])
        assert error_of(bench.offsets.delete(GROUP, [])) is ErrorCode.non_empty_group

    def test_a_group_with_members_is_refused(self) -> None:
        bench = Bench()
        bench.stable()
        assert error_of(bench.groups.delete_group(GROUP)) is ErrorCode.non_empty_group


class TestRetention:
    def test_of_a_group_that_was_left_counts_from_then(self) -> None:
        bench = Bench(offset_settings=SHORT)
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
        bench = Bench(offset_settings=SHORT)
        (member,) = bench.stable(1, session_ms=1_800_000)
        for topic in (TOPIC, "former"):
            bench.start_commit(member=member.identity, generation_id=1, topic=topic).result()
        bench.advance(RETENTION_MS + 2_000)
        assert (bench.committed(), bench.committed("former")) == (5, None)
        assert bench.state() is ClassicGroupState.STABLE

    def test_never_ends_while_the_topics_of_the_members_are_unknown(self) -> None:
        bench = Bench(offset_settings=SHORT)
        (member,) = bench.stable(1, session_ms=1_800_000, protocols={"range": b"unreadable"})
        bench.start_commit(member=member.identity, generation_id=1).result()
        bench.advance(RETENTION_MS * 2)
        assert bench.committed() == 5

    def test_leaves_a_group_alone_that_a_member_is_about_to_join(self) -> None:
        bench = Bench(offset_settings=SHORT)
        bench.start_commit().result()
        bench.advance(RETENTION_MS - 500)
        member_id = bench.new_member_id()
        bench.advance(2_000)
        reply = bench.start_join(member_id, protocols={"range": subscription(TOPIC)})
        bench.advance(0)
        assert reply.result().error_code is ErrorCode.none
