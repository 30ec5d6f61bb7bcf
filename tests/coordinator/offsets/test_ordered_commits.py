"""Groups with `individual.commit.order=partition`: transactional commits that wait for the stable offset."""

from __future__ import annotations

import pytest

from barnabas.coordinator.group.member_identity import MemberIdentity
from barnabas.coordinator.offsets.requests import TransactionalCommit
from barnabas.coordinator.offsets.settings import OffsetSettings
from barnabas.protocol.classic_group_records import NO_TOPIC_ID
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.identity import ProducerIdentity, TopicIdPartition
from barnabas.runtime.completion import Completion
from tests.coordinator.classic.classic_bench import Bench
from tests.coordinator.consumer.consumer_bench import SESSION_MS, ConsumerBench
from tests.coordinator.consumer.sharing_member import Member, bench_of, settle
from tests.coordinator.offsets.individual_commits import (
    FIRST_PARTITION,
    commit_ranges,
    commit_ranges_in_transaction,
    end_transaction,
    state,
    transactional_ranges,
)
from tests.coordinator.offsets.transactions import WAIT_MS, transactional_commit
from tests.coordinator.simulated_log import error_of

A, B, C = (ProducerIdentity(number, 0) for number in (11, 12, 13))
SECOND = TopicIdPartition(NO_TOPIC_ID, 1)
Reply = Completion[list[ErrorCode]]
ANSWERED = [ErrorCode.none]


def bench_at(stable_offset: int = 39, **options: object) -> Bench:
    bench = Bench(commits_in_order=True, **options)  # type: ignore[arg-type]
    for partition in (TopicIdPartition(NO_TOPIC_ID, 0), SECOND):
        assert commit_ranges(bench, start=stable_offset + 1, partition=partition).result() == ANSWERED
    return bench


def test_ranges_join_the_offset_once_the_gap_before_them_is_committed() -> None:
    bench = bench_at(39)
    of_b = commit_ranges_in_transaction(bench, (45, 49), producer=B)
    assert not of_b.done
    of_a = commit_ranges_in_transaction(bench, (40, 44), producer=A)
    assert (of_a.result(), of_b.result()) == (ANSWERED, ANSWERED)
    end_transaction(bench, commit=True, producer=B)
    assert state(bench) == (39, [(45, 49)])
    end_transaction(bench, commit=True, producer=A)
    assert state(bench) == (49, [])


def test_an_abort_leaves_the_other_waiting_for_the_next_commit() -> None:
    bench = bench_at(39)
    of_b = commit_ranges_in_transaction(bench, (45, 49), producer=B)
    end_transaction(bench, commit=False, producer=A)
    assert not of_b.done
    assert commit_ranges_in_transaction(bench, (40, 44), producer=C).result() == ANSWERED
    assert of_b.result() == ANSWERED


def test_after_an_abort_the_ranges_answered_with_it_stay_individual() -> None:
    bench = bench_at(39)
    of_b = commit_ranges_in_transaction(bench, (45, 49), producer=B)
    commit_ranges_in_transaction(bench, (40, 44), producer=A).result()
    end_transaction(bench, commit=False, producer=A)
    end_transaction(bench, commit=True, producer=B)
    assert of_b.result() == ANSWERED
    assert state(bench) == (39, [(45, 49)])


def test_a_chain_is_answered_from_the_lowest_offset() -> None:
    bench = bench_at(39)
    of_c = commit_ranges_in_transaction(bench, (43, 43), producer=C)
    of_b = commit_ranges_in_transaction(bench, (41, 41), (44, 44), producer=B)
    assert not of_b.done
    of_a = commit_ranges_in_transaction(bench, (40, 40), (42, 42), producer=A)
    assert [one.result() for one in (of_a, of_b, of_c)] == [ANSWERED] * 3
    assert [one.producer for one in bench.log.batches[-3:]] == [A, B, C]


def test_commits_that_reach_it_together_do_not_wait_for_each_other() -> None:
    bench = bench_at(39)
    of_b = commit_ranges_in_transaction(bench, (41, 41), (60, 60), producer=B)
    of_a = commit_ranges_in_transaction(bench, (40, 40), (50, 50), producer=A)
    assert (of_a.result(), of_b.result()) == (ANSWERED, ANSWERED)


def test_partitions_that_wait_for_each_other_are_answered_together() -> None:
    bench = bench_at(39)

    def both(first: int, second: int, producer: ProducerIdentity) -> Reply:
        ranges = {FIRST_PARTITION: [(first, first)], SECOND: [(second, second)]}
        return bench.offsets.commit_in_transaction(transactional_ranges(bench, ranges, producer=producer))

    of_a = both(40, 41, A)
    assert not of_a.done
    of_b = both(41, 40, B)
    assert (of_a.result(), of_b.result()) == ([ErrorCode.none] * 2, [ErrorCode.none] * 2)


def test_an_ordinary_commit_of_the_missing_offsets_ends_the_wait() -> None:
    bench = bench_at(39)
    of_b = commit_ranges_in_transaction(bench, (45, 49), producer=B)
    commit_ranges(bench, (40, 43)).result()
    assert not of_b.done
    commit_ranges(bench, (44, 44)).result()
    assert of_b.result() == ANSWERED


def test_committed_offsets_do_not_wait() -> None:
    bench = bench_at(39)
    assert commit_ranges_in_transaction(bench, (10, 20), (39, 39)).result() == ANSWERED
    commit_ranges(bench, (45, 49)).result()
    assert not commit_ranges_in_transaction(bench, (48, 52)).done


def test_ordinary_offsets_do_not_wait() -> None:
    assert transactional_commit(bench_at(39), 80).result() == ANSWERED


def test_a_group_without_the_setting_does_not_wait() -> None:
    bench = Bench()
    commit_ranges(bench, start=40).result()
    assert commit_ranges_in_transaction(bench, (45, 49)).result() == ANSWERED


# The end of a wait


def test_a_wait_ends_before_the_transaction_times_out() -> None:
    bench = bench_at(39)
    waiting = commit_ranges_in_transaction(bench, (45, 49))
    bench.advance(WAIT_MS - 1)
    assert not waiting.done
    bench.advance(1)
    assert error_of(waiting) is ErrorCode.transaction_abortable
    commit_ranges(bench, (40, 44)).result()
    assert state(bench) == (44, [])


def test_a_fenced_producer_leaves_when_its_transaction_ends() -> None:
    bench, fenced = bench_at(39), False

    def check() -> None:
        if fenced:
            raise ApiError(ErrorCode.invalid_producer_epoch, "A newer producer has the transactional id.")

    waiting = commit_ranges_in_transaction(bench, (45, 49), producer=B, check=check)
    fenced = True
    end_transaction(bench, commit=False, producer=B)
    assert error_of(waiting) is ErrorCode.invalid_producer_epoch
    commit_ranges(bench, (40, 44)).result()
    assert state(bench) == (44, [])


def test_a_commit_whose_client_is_gone_does_not_take_place() -> None:
    bench = bench_at(39)
    commit = transactional_ranges(bench, {FIRST_PARTITION: [(45, 49)]})
    waiting = bench.offsets.commit_in_transaction(commit)
    bench.offsets.withdraw(commit)
    commit_ranges(bench, (40, 44)).result()
    assert not waiting.done
    end_transaction(bench, commit=True)
    assert state(bench) == (44, [])


def test_a_coordinator_that_is_loaded_again_refuses_the_commits() -> None:
    bench = bench_at(39)
    waiting = commit_ranges_in_transaction(bench, (45, 49))
    bench.reload()
    assert error_of(waiting) is ErrorCode.coordinator_load_in_progress


def test_a_commit_that_cannot_be_written_is_refused_and_the_others_wait_on() -> None:
    bench = bench_at(39)
    of_b = commit_ranges_in_transaction(bench, (45, 49), producer=B)
    bench.log.fails_after = 0
    of_a = commit_ranges_in_transaction(bench, (40, 44), producer=A)
    assert error_of(of_a) is ErrorCode.coordinator_not_available
    assert not of_b.done


def test_waiting_ranges_count_for_the_limit() -> None:
    bench = bench_at(39, offset_settings=OffsetSettings(partition_ranges_max=3))
    waiting = commit_ranges_in_transaction(bench, (45, 45), (47, 47), producer=B)
    refused = commit_ranges_in_transaction(bench, (50, 50), (52, 52), producer=C)
    assert refused.result() == [ErrorCode.invalid_commit_offset_size]
    commit_ranges_in_transaction(bench, (40, 44), producer=A).result()
    assert waiting.result() == ANSWERED


# A commit whose partition has an append under way


def start_commit_behind_an_append(
    bench: Bench, *ranges: tuple[int, int], producer: ProducerIdentity = B
) -> tuple[TransactionalCommit, Reply]:
    """A commit that is queued until `bench.log.release()` ends the append of another partition's offset."""
    bench.log.held = True
    commit_ranges(bench, start=1, partition=TopicIdPartition(NO_TOPIC_ID, 2))
    commit = transactional_ranges(bench, {FIRST_PARTITION: ranges}, producer=producer)
    reply = bench.offsets.commit_in_transaction(commit)
    bench.log.held = False
    return commit, reply


def test_a_queued_commit_with_a_request_behind_it_does_not_begin_to_wait() -> None:
    bench = bench_at(39)
    commit, queued = start_commit_behind_an_append(bench, (45, 49))
    bench.offsets.end_wait(commit)
    assert not queued.done
    bench.log.release()
    assert error_of(queued) is ErrorCode.transaction_abortable
    assert bench.offsets.waiting_count == 0
    commit_ranges(bench, (40, 44)).result()
    end_transaction(bench, commit=True, producer=B)
    assert state(bench) == (44, [])


def test_a_queued_commit_with_a_request_behind_it_is_written_if_it_need_not_wait() -> None:
    bench = bench_at(39)
    commit, queued = start_commit_behind_an_append(bench, (40, 44))
    bench.offsets.end_wait(commit)
    bench.log.release()
    assert queued.result() == ANSWERED


@pytest.mark.parametrize("end_wait", ["a request behind it", "its time"])
def test_a_commit_that_is_being_written_is_answered_by_the_write_alone(end_wait: str) -> None:
    bench = bench_at(39)
    bench.log.held = True
    commit = transactional_ranges(bench, {FIRST_PARTITION: ((40, 44),)}, producer=B)
    writing = bench.offsets.commit_in_transaction(commit)
    if end_wait == "its time":
        bench.offsets.expire(commit.wait_until_ms)
    else:
        bench.offsets.end_wait(commit)
    assert not writing.done
    bench.log.held = False
    bench.log.release()
    assert writing.result() == ANSWERED


@pytest.mark.parametrize("ranges", [(45, 49), (40, 44), (10, 20)])
def test_a_queued_commit_whose_client_is_gone_does_not_take_place(ranges: tuple[int, int]) -> None:
    bench = bench_at(39)
    commit, queued = start_commit_behind_an_append(bench, ranges)
    bench.offsets.withdraw(commit)
    bench.log.release()
    written = len(bench.log.batches)
    assert (queued.done, bench.offsets.waiting_count) == (False, 0)
    commit_ranges(bench, (40, 44)).result()
    assert len(bench.log.batches) == written + 1
    end_transaction(bench, commit=True, producer=B)
    assert state(bench) == (44, [])


def test_a_queued_commit_is_refused_while_the_coordinator_is_loaded_again() -> None:
    bench = bench_at(39)
    commit, queued = start_commit_behind_an_append(bench, (45, 49))
    bench.offsets.end_wait(commit)
    bench.reload()
    assert error_of(queued) is ErrorCode.coordinator_load_in_progress
    bench.offsets.withdraw(commit)
    assert bench.offsets.waiting_count == 0


# Members


@pytest.fixture
def shared() -> tuple[ConsumerBench, Member, Member]:
    """Two members that share the only partition, whose stable offset is 39."""
    bench = bench_of(1, commits_in_order=True)
    commit_ranges(bench, start=40, partition=TopicIdPartition(bench.topic_id, 0)).result()
    members = Member(bench, "a"), Member(bench, "b")
    settle(list(members))
    return bench, *members


def commit_of(bench: ConsumerBench, member: Member, offset: int) -> Reply:
    return commit_ranges_in_transaction(
        bench,
        (offset, offset),
        member=MemberIdentity(member.member_id, None),
        generation_id=member.epoch,
        partition=TopicIdPartition(bench.topic_id, 0),
    )


def test_a_member_that_leaves_takes_its_commit_along(shared: tuple[ConsumerBench, Member, Member]) -> None:
    bench, _, member = shared
    waiting = commit_of(bench, member, 45)
    assert not waiting.done
    member.leave()
    assert error_of(waiting) is ErrorCode.unknown_member_id


def test_a_member_whose_session_expires_takes_its_commit_along(
    shared: tuple[ConsumerBench, Member, Member],
) -> None:
    bench, other, member = shared
    waiting = commit_of(bench, member, 45)
    for _ in range(3):
        bench.advance(SESSION_MS // 2)
        other.beat()
    assert error_of(waiting) is ErrorCode.unknown_member_id


def test_a_member_that_has_to_give_up_its_share_does_not_wait(
    shared: tuple[ConsumerBench, Member, Member],
) -> None:
    bench, _, member = shared
    waiting = commit_of(bench, member, 45)
    Member(bench, "c").beat()
    assert not waiting.done
    member.beat()
    assert error_of(waiting) is ErrorCode.transaction_abortable
