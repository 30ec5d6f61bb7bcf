"""Members that share partitions: who gets which hashes, and that no hash ever has two owners."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from barnabas.coordinator.group.member_identity import MemberIdentity
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import ProducerIdentity, TopicIdPartition
from barnabas.protocol.record_keys.hash_range import ALL_HASHES, HashRange, even_ranges
from tests.coordinator.classic.classic_bench import GROUP, TOPIC
from tests.coordinator.consumer.consumer_bench import ASSIGNMENT_INTERVAL_MS, SESSION_MS, ConsumerBench
from tests.coordinator.consumer.sharing_member import PARTITION_COUNT, Member, bench_of, settle
from tests.coordinator.offsets.individual_commits import (
    commit_ranges,
    commit_ranges_in_transaction,
    end_transaction,
)
from tests.coordinator.simulated_log import error_of


def ranges(members: list[Member]) -> dict[int, list[HashRange]]:
    """The ranges of each partition."""
    found: dict[int, list[HashRange]] = {}
    for member in members:
        for partition, hashes in member.owned.items():
            found.setdefault(partition.partition, []).append(hashes)
    return {index: sorted(ones) for index, ones in sorted(found.items())}


def joined(bench: ConsumerBench, count: int, *, individual: bool = True) -> list[Member]:
    members = [Member(bench, f"m{number}", individual=individual) for number in range(count)]
    settle(members)
    return members


def test_five_members_share_three_partitions() -> None:
    members = joined(bench_of(), 5)
    assert ranges(members) == {0: even_ranges(2), 1: even_ranges(2), 2: [ALL_HASHES]}


def test_members_that_do_not_commit_individually_share_nothing() -> None:
    members = joined(bench_of(), 5, individual=False)
    assert ranges(members) == {0: [ALL_HASHES], 1: [ALL_HASHES], 2: [ALL_HASHES]}


def test_in_a_mixed_group_the_others_keep_whole_partitions() -> None:
    bench = bench_of()
    others = [Member(bench, "other", individual=False)]
    settle(others)
    sharers = [Member(bench, f"sharer{number}") for number in range(5)]
    settle([*others, *sharers])
    (whole,) = ranges(others)
    assert ranges(others) == {whole: [ALL_HASHES]}
    assert sorted(map(len, ranges(sharers).values())) == [2, 3]
    assert whole not in ranges(sharers)


def test_members_that_begin_or_cease_to_commit_individually_change_the_assignment() -> None:
    members = joined(bench_of(), 5, individual=False)
    for member in members:
        member.individual = True
    settle(members)
    assert sorted(map(len, ranges(members).values())) == [1, 2, 2]
    for member in members:
        member.individual = False
    settle(members)
    assert ranges(members) == {0: [ALL_HASHES], 1: [ALL_HASHES], 2: [ALL_HASHES]}


def test_a_member_that_begins_again_to_commit_individually_learns_the_share_that_it_still_has() -> None:
    bench = ConsumerBench(interval_ms=ASSIGNMENT_INTERVAL_MS)
    bench.topic_id = bench.create_topic(TOPIC, 1)
    members = [Member(bench, "a"), Member(bench, "b")]
    settle(members)
    bench.advance(ASSIGNMENT_INTERVAL_MS)
    settle(members)
    shares = {bench.topic_id: (0,)}
    epoch = members[0].epoch
    ceased = bench.start_heartbeat("a", epoch, owned=shares, individual_commit=False).result()
    assert ceased.assignment == {}
    began = bench.start_heartbeat("a", epoch, owned={}, individual_commit=True).result()
    assert began.assignment == shares
    assert began.shares == members[0].owned


def test_a_range_has_to_be_given_up_before_another_member_gets_it() -> None:
    bench = bench_of(1)
    first, second = Member(bench, "first"), Member(bench, "second")
    first.beat()
    second.beat()
    assert (ranges([first]), ranges([second])) == ({0: [ALL_HASHES]}, {})
    first.beat()
    assert ranges([first]) == {}
    second.beat()
    assert ranges([second]) == {}
    first.beat()
    second.beat()
    assert ranges([first, second]) == {0: even_ranges(2)}


def test_the_ranges_of_a_member_whose_session_expires_go_to_the_others() -> None:
    bench = bench_of(1)
    members = joined(bench, 3)
    for _ in range(3):
        bench.advance(SESSION_MS // 2)
        for member in members[1:]:
            member.beat()
    settle(members[1:])
    assert ranges(members[1:]) == {0: even_ranges(2)}


def test_shares_survive_a_restart() -> None:
    bench = bench_of()
    members = joined(bench, 5)
    before = ranges(members)
    bench.restart()
    settle(members)
    assert ranges(members) == before
    assert {member.epoch for member in members} == {max(member.epoch for member in members)}


def commit(bench: ConsumerBench, member: Member, partition: TopicIdPartition, producer_id: int) -> ErrorCode:
    """The member commits a record of a partition in a producer's transaction."""
    reply = commit_ranges_in_transaction(
        bench,
        (10, 10),
        producer=ProducerIdentity(producer_id, 0),
        member=MemberIdentity(member.member_id, None),
        generation_id=member.epoch,
        partition=partition,
    )
    return error_of(reply) if reply.error is not None else reply.result()[0]


def end(bench: ConsumerBench, producer_id: int, *, commit: bool) -> None:
    end_transaction(bench, commit=commit, producer=ProducerIdentity(producer_id, 0))


def begin_offsets(bench: ConsumerBench) -> None:
    """A stable offset for each partition, as the first members commit it."""
    for index in range(PARTITION_COUNT):
        partition = TopicIdPartition(bench.topic_id, index)
        assert commit_ranges(bench, start=0, partition=partition).result() == [ErrorCode.none]


@pytest.mark.parametrize("ends_in", [True, False])
def test_a_share_waits_for_the_transaction_of_its_former_owner(ends_in: bool) -> None:
    bench = bench_of(1)
    begin_offsets(bench)
    first, second = Member(bench, "first"), Member(bench, "second")
    first.beat()
    (partition,) = first.owned
    assert commit(bench, first, partition, 11) is ErrorCode.none
    settle([first, second])
    assert ranges([first, second]) == {}
    end(bench, 11, commit=ends_in)
    settle([first, second])
    assert ranges([first, second]) == {0: even_ranges(2)}


def test_the_share_of_a_member_that_left_waits_for_its_transaction() -> None:
    bench = bench_of(1)
    begin_offsets(bench)
    first, second = joined(bench, 2)
    (partition,) = first.owned
    assert commit(bench, first, partition, 11) is ErrorCode.none
    first.leave()
    settle([second])
    assert ranges([second]) == {}
    bench.restart()
    settle([second])
    assert ranges([second]) == {}
    end(bench, 11, commit=False)
    settle([second])
    assert ranges([second]) == {0: [ALL_HASHES]}


def test_ranges_of_a_partition_that_the_member_does_not_have_are_refused() -> None:
    bench = bench_of()
    begin_offsets(bench)
    members = joined(bench, 5)
    (partition,) = members[0].owned
    other = next(one for one in members if partition not in one.owned)
    assert commit(bench, other, partition, 11) is ErrorCode.stale_member_epoch
    assert commit(bench, Member(bench, ""), partition, 11) is ErrorCode.unknown_member_id


class SharedPartitions(RuleBasedStateMachine):
    """Random joins, departures, heartbeats, lost answers, commits in transactions, restarts, and changes of
    the members' setting.
    """

    def __init__(self) -> None:
        super().__init__()
        self.bench = bench_of()
        self.members: list[Member] = []
        self._count = 0
        self._pending: dict[int, list[tuple[str, TopicIdPartition, HashRange]]] = {}
        """The member and its share for each commit of a producer's open transaction."""
        begin_offsets(self.bench)

    @precondition(lambda self: len(self.members) < 8)
    @rule(individual=st.booleans())
    def join(self, individual: bool) -> None:
        self._count += 1
        self.members.append(Member(self.bench, f"m{self._count}", individual=individual))
        self.members[-1].beat()

    @precondition(lambda self: self.members)
    @rule(index=st.integers(0, 7), hears=st.booleans())
    def beat(self, index: int, hears: bool) -> None:
        self.members[index % len(self.members)].beat(hears=hears)

    @precondition(lambda self: self.members)
    @rule(index=st.integers(0, 7))
    def leave(self, index: int) -> None:
        self.members.pop(index % len(self.members)).leave()

    @precondition(lambda self: self.members)
    @rule(index=st.integers(0, 7))
    def change(self, index: int) -> None:
        member = self.members[index % len(self.members)]
        member.individual = not member.individual

    @precondition(lambda self: self.members)
    @rule(index=st.integers(0, 7), producer_id=st.integers(11, 13))
    def commit(self, index: int, producer_id: int) -> None:
        member = self.members[index % len(self.members)]
        for partition, hashes in member.owned.items():
            if commit(self.bench, member, partition, producer_id) is ErrorCode.none:
                entry = (member.member_id, partition, hashes)
                self._pending.setdefault(producer_id, []).append(entry)

    @rule(producer_id=st.integers(11, 13), commit=st.booleans())
    def end(self, producer_id: int, commit: bool) -> None:
        if self._pending.pop(producer_id, None):
            end(self.bench, producer_id, commit=commit)

    @rule()
    def restart(self) -> None:
        self.bench.restart()

    @invariant()
    def no_hash_has_two_owners(self) -> None:
        for ones in ranges(self.members).values():
            assert all(one.last_hash < after.first_hash for one, after in itertools.pairwise(ones)), ones

    @invariant()
    def no_member_reads_what_the_transaction_of_another_may_commit(self) -> None:
        pending = [one for ones in self._pending.values() for one in ones]
        for member_id, partition, hashes in pending:
            for other in self.members:
                share = other.owned.get(partition)
                assert other.member_id == member_id or share is None or not share.overlaps(hashes)

    def teardown(self) -> None:
        for producer_id in self._pending:
            end(self.bench, producer_id, commit=True)
        if self.members:
            settle(self.members)
            settle(self.members)
            found = ranges(self.members)
            assert list(found) == list(range(PARTITION_COUNT))
            assert all(ones == even_ranges(len(ones)) for ones in found.values())


TestSharedPartitions = SharedPartitions.TestCase
TestSharedPartitions.settings = settings(max_examples=50, stateful_step_count=30)


def test_a_member_that_joins_again_waits_for_its_own_transaction_before_it_reads_offsets() -> None:
    bench = bench_of(1)
    a, b = joined(bench, 2)
    partition = TopicIdPartition(bench.topic_id, 0)
    identity = MemberIdentity(a.member_id, None)
    start = commit_ranges(bench, start=0, member=identity, generation_id=a.epoch, partition=partition)
    assert start.result() == [ErrorCode.none]
    pending = commit_ranges_in_transaction(
        bench, (0, 3), partition=partition, member=identity, generation_id=a.epoch
    )
    assert pending.result() == [ErrorCode.none]
    a.epoch, a.owned = 0, {}
    a.beat()
    assert a.owned

    def is_unstable(reader: Member) -> bool:
        (found,) = bench.offsets.fetch(
            GROUP, {TOPIC: [0]}, require_stable=True, member_id=reader.member_id, member_epoch=reader.epoch
        )
        return found.is_unstable

    assert (is_unstable(a), is_unstable(b)) == (True, False)
    end_transaction(bench, commit=True)
    assert not is_unstable(a)
