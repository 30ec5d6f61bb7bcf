"""Offsets that producers commit in transactions: invisible until the end, then there or never."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from barnabas.coordinator.classic.offsets import CommitRequest, OffsetToCommit, TransactionalCommit
from barnabas.coordinator.classic.requests import MemberIdentity
from barnabas.coordinator.classic.settings import ClassicSettings
from barnabas.coordinator.group.partition_hash import partition_of_group
from barnabas.coordinator.reply import CoordinatorReply
from barnabas.coordinator.runtime.interfaces import TransactionMarker
from barnabas.protocol.classic_group_records import NO_TOPIC_ID
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.identity import ProducerIdentity
from tests.coordinator.classic.classic_bench import GROUP, TOPIC, Bench
from tests.coordinator.simulated_log import error_of

PRODUCER, ANOTHER = ProducerIdentity(11, 0), ProducerIdentity(12, 0)
NOBODY = MemberIdentity("", None)
PARTITION = partition_of_group(GROUP)
RETENTION_MS = 100_000


def agree() -> None:
    """The transaction takes part."""


def start_commit(
    bench: Bench,
    offset: int = 5,
    *,
    producer: ProducerIdentity = PRODUCER,
    group_id: str = GROUP,
    member: MemberIdentity = NOBODY,
    generation_id: int = -1,
    metadata: str = "",
    check: Callable[[], None] = agree,
) -> CoordinatorReply[list[ErrorCode]]:
    offsets = [OffsetToCommit(TOPIC, NO_TOPIC_ID, 0, offset, -1, metadata)]
    request = CommitRequest(group_id, member, generation_id, offsets, tells_not_found=False)
    return bench.classic.commit_in_transaction(TransactionalCommit(request, producer, check))


def end(
    bench: Bench, *, commit: bool, producer: ProducerIdentity = PRODUCER, partition: int = PARTITION
) -> None:
    bench.groups.end_transaction(partition, TransactionMarker(producer, 1, commit)).result()


def is_unstable(bench: Bench) -> bool:
    (found,) = bench.classic.fetch_offsets(GROUP, {TOPIC: [0]}, require_stable=True)
    return found.is_unstable


def go_on(bench: Bench) -> None:
    """Nothing happens in between."""


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("come_back", [Bench.restart, Bench.reload, go_on])
def test_count_from_the_end_on_or_never(commit: bool, come_back: Callable[[Bench], None]) -> None:
    bench = Bench()
    assert start_commit(bench, 7).result() == [ErrorCode.none]
    come_back(bench)
    assert (bench.committed(), is_unstable(bench)) == (None, True)
    end(bench, commit=commit)
    for _ in range(2):
        assert (bench.committed(), is_unstable(bench)) == (7 if commit else None, False)
        bench.restart()


def test_of_two_the_last_one_counts() -> None:
    bench = Bench()
    for offset in (7, 9, 8):
        start_commit(bench, offset).result()
    end(bench, commit=True)
    assert bench.committed() == 8


def test_an_offset_that_was_committed_later_counts_though_the_transaction_ended_after_it() -> None:
    for restarts in (False, True):
        bench = Bench()
        start_commit(bench, 7).result()
        bench.start_commit(9).result()
        assert (bench.committed(), is_unstable(bench)) == (9, True)
        end(bench, commit=True)
        if restarts:
            bench.restart()
        assert (bench.committed(), is_unstable(bench)) == (9, False)


def test_several_transactions_end_each_for_itself() -> None:
    bench = Bench()
    start_commit(bench, 7).result()
    start_commit(bench, 8, producer=ANOTHER).result()
    end(bench, commit=False)
    assert (bench.committed(), is_unstable(bench)) == (None, True)
    end(bench, commit=True, producer=ANOTHER)
    assert (bench.committed(), is_unstable(bench)) == (8, False)


def test_a_transaction_ends_partition_by_partition() -> None:
    bench = Bench()
    other = next(f"g{number}" for number in range(100) if partition_of_group(f"g{number}") != PARTITION)
    start_commit(bench, 7).result()
    start_commit(bench, 8, group_id=other).result()
    end(bench, commit=True)
    assert (bench.committed(), bench.committed(group_id=other)) == (7, None)
    end(bench, commit=True, partition=partition_of_group(other))
    assert bench.committed(group_id=other) == 8


def delete_offset(bench: Bench) -> None:
    bench.classic.delete_offsets(GROUP, [(TOPIC, 0)]).result()


def delete_topic(bench: Bench) -> None:
    bench.groups.on_topics_deleted({TOPIC: NO_TOPIC_ID})


def delete_group(bench: Bench) -> None:
    bench.groups.delete_group(GROUP).result()


@pytest.mark.parametrize("delete", [delete_offset, delete_topic, delete_group])
def test_what_was_deleted_meanwhile_stays_so(delete: Callable[[Bench], None]) -> None:
    bench = Bench()
    start_commit(bench, 7).result()
    delete(bench)
    assert not is_unstable(bench)
    end(bench, commit=True)
    assert bench.committed() is None
    bench.restart()
    assert bench.committed() is None


def test_keep_the_group_and_its_offsets_from_expiring() -> None:
    settings = ClassicSettings(offsets_retention_ms=RETENTION_MS, offsets_retention_check_interval_ms=1_000)
    bench = Bench(settings)
    bench.start_commit(3).result()
    start_commit(bench, 7).result()
    bench.advance(2 * RETENTION_MS)
    assert bench.committed() == 3
    end(bench, commit=False)
    bench.advance(1_000)
    assert bench.committed() is None
    assert bench.groups.list_groups() == []


def test_make_a_simple_group_where_there_is_none() -> None:
    bench = Bench()
    start_commit(bench).result()
    assert bench.groups.list_groups()[0] == (GROUP, "", "Empty", "classic")


class TestWhoMayCommit:
    def test_a_member_of_this_generation_whatever_the_group_does(self) -> None:
        bench = Bench()
        (member,) = bench.stable()
        assert start_commit(bench, member=member.identity, generation_id=1).result() == [ErrorCode.none]
        bench.start_join(bench.new_member_id())
        assert start_commit(bench, member=member.identity, generation_id=1).result() == [ErrorCode.none]

    def test_a_producer_that_names_no_member(self) -> None:
        bench = Bench()
        bench.stable()
        assert start_commit(bench).result() == [ErrorCode.none]

    @pytest.mark.parametrize(
        ("member_id", "generation_id", "code"),
        [
            ("stranger", 1, ErrorCode.unknown_member_id),
            ("own", 0, ErrorCode.illegal_generation),
            ("own", -1, ErrorCode.illegal_generation),
            ("", 1, ErrorCode.unknown_member_id),
        ],
    )
    def test_nobody_else(self, member_id: str, generation_id: int, code: ErrorCode) -> None:
        bench = Bench()
        (member,) = bench.stable()
        identity = member.identity if member_id == "own" else MemberIdentity(member_id, None)
        assert error_of(start_commit(bench, member=identity, generation_id=generation_id)) is code

    def test_nobody_in_a_generation_of_a_group_that_is_not_there(self) -> None:
        assert error_of(start_commit(Bench(), generation_id=3)) is ErrorCode.illegal_generation

    def test_nobody_whose_transaction_does_not_take_part(self) -> None:
        def refuse() -> None:
            raise ApiError(ErrorCode.invalid_txn_state)

        bench = Bench()
        assert error_of(start_commit(bench, check=refuse)) is ErrorCode.invalid_txn_state
        assert bench.log.batches == []

    def test_nobody_with_too_much_metadata(self) -> None:
        bench = Bench()
        reply = start_commit(bench, metadata="m" * 4_097)
        assert reply.result() == [ErrorCode.offset_metadata_too_large]
        assert bench.log.batches == []


def test_an_offset_that_could_not_be_written_is_not_pending() -> None:
    bench = Bench()
    bench.log.failing = True
    assert error_of(start_commit(bench)) is ErrorCode.coordinator_not_available
    assert not is_unstable(bench)
