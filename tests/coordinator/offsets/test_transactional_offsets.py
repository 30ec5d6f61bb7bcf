"""Offsets that producers commit in transactions: invisible until the end, then committed or dropped."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from barnabas.coordinator.offsets.settings import OffsetSettings
from barnabas.coordinator.replay.interfaces import TransactionMarker
from barnabas.protocol.classic_group_records import NO_TOPIC_ID
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.identity import ProducerIdentity
from tests.coordinator.classic.classic_bench import GROUP, TOPIC, Bench
from tests.coordinator.group.partition_count import partition_of_group
from tests.coordinator.offsets.transactions import PRODUCER, transactional_commit
from tests.coordinator.simulated_log import error_of

ANOTHER = ProducerIdentity(12, 0)
PARTITION = partition_of_group(GROUP)
RETENTION_MS = 100_000


def end(
    bench: Bench, *, commit: bool, producer: ProducerIdentity = PRODUCER, partition: int = PARTITION
) -> None:
    bench.groups.end_transaction(partition, TransactionMarker(producer, 1, commit)).result()


def is_unstable(bench: Bench) -> bool:
    (found,) = bench.offsets.fetch(GROUP, {TOPIC: [0]}, require_stable=True)
    return found.is_unstable


def go_on(bench: Bench) -> None:
    """Nothing happens in between."""


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("come_back", [Bench.restart, Bench.reload, go_on])
def test_offsets_count_from_the_end_of_their_transaction_on_or_never(
    commit: bool, come_back: Callable[[Bench], None]
) -> None:
    bench = Bench()
    assert transactional_commit(bench, 7).result() == [ErrorCode.none]
    come_back(bench)
    assert (bench.committed(), is_unstable(bench)) == (None, True)
    end(bench, commit=commit)
    for _ in range(2):
        assert (bench.committed(), is_unstable(bench)) == (7 if commit else None, False)
        bench.restart()


def test_of_several_commits_the_last_one_counts() -> None:
    bench = Bench()
    for offset in (7, 9, 8):
        transactional_commit(bench, offset).result()
    end(bench, commit=True)
    assert bench.committed() == 8


def test_an_offset_that_was_committed_later_counts_though_the_transaction_ended_after_it() -> None:
    for restarts in (False, True):
        bench = Bench()
        transactional_commit(bench, 7).result()
        bench.start_commit(9).result()
        assert (bench.committed(), is_unstable(bench)) == (9, True)
        end(bench, commit=True)
        if restarts:
            bench.restart()
        assert (bench.committed(), is_unstable(bench)) == (9, False)


def test_several_transactions_end_each_for_itself() -> None:
    bench = Bench()
    transactional_commit(bench, 7).result()
    transactional_commit(bench, 8, producer=ANOTHER).result()
    end(bench, commit=False)
    assert (bench.committed(), is_unstable(bench)) == (None, True)
    end(bench, commit=True, producer=ANOTHER)
    assert (bench.committed(), is_unstable(bench)) == (8, False)


def test_a_transaction_ends_partition_by_partition() -> None:
    bench = Bench()
    other = next(f"g{number}" for number in range(100) if partition_of_group(f"g{number}") != PARTITION)
    transactional_commit(bench, 7).result()
    transactional_commit(bench, 8, group_id=other).result()
    end(bench, commit=True)
    assert (bench.committed(), bench.committed(group_id=other)) == (7, None)
    end(bench, commit=True, partition=partition_of_group(other))
    assert bench.committed(group_id=other) == 8


def delete_offset(bench: Bench) -> None:
    bench.offsets.delete(GROUP, [(TOPIC, 0)]).result()


def delete_topic(bench: Bench) -> None:
    bench.groups.on_topics_deleted({TOPIC: NO_TOPIC_ID})


def delete_group(bench: Bench) -> None:
    bench.groups.delete_group(GROUP).result()


@pytest.mark.parametrize("delete", [delete_offset, delete_topic, delete_group])
def test_offsets_deleted_meanwhile_stay_deleted(delete: Callable[[Bench], None]) -> None:
    bench = Bench()
    transactional_commit(bench, 7).result()
    delete(bench)
    assert not is_unstable(bench)
    end(bench, commit=True)
    assert bench.committed() is None
    bench.restart()
    assert bench.committed() is None


def test_pending_offsets_keep_the_group_and_its_offsets_from_expiring() -> None:
    settings = OffsetSettings(retention_ms=RETENTION_MS, retention_check_interval_ms=1_000)
    bench = Bench(offset_settings=settings)
    bench.start_commit(3).result()
    transactional_commit(bench, 7).result()
    bench.advance(2 * RETENTION_MS)
    assert bench.committed() == 3
    end(bench, commit=False)
    bench.advance(1_000)
    assert bench.committed() is None
    assert bench.groups.list_groups() == []


def test_pending_offsets_make_a_simple_group_where_there_is_none() -> None:
    bench = Bench()
    transactional_commit(bench).result()
    assert bench.groups.list_groups()[0] == (GROUP, "", "Empty", "classic", 0)


def test_a_commit_without_the_partition_in_the_transaction_is_refused() -> None:
    def refuse() -> None:
        raise ApiError(ErrorCode.invalid_txn_state)

    bench = Bench()
    assert error_of(transactional_commit(bench, check=refuse)) is ErrorCode.invalid_txn_state
    assert bench.log.batches == []


def test_a_commit_with_too_much_metadata_is_refused() -> None:
    bench = Bench()
    reply = transactional_commit(bench, metadata="m" * 4_097)
    assert reply.result() == [ErrorCode.offset_metadata_too_large]
    assert bench.log.batches == []


def test_an_offset_that_could_not_be_written_is_not_pending() -> None:
    bench = Bench()
    bench.log.failing = True
    assert error_of(transactional_commit(bench)) is ErrorCode.coordinator_not_available
    assert not is_unstable(bench)
