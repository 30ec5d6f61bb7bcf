"""The records of a commit: the group that it creates, limits, all or nothing."""

from __future__ import annotations

import pytest

from barnabas.protocol.errors import ErrorCode
from tests.coordinator.classic.classic_bench import GROUP, TOPIC, Bench
from tests.coordinator.classic.share_groups import make_share_group
from tests.coordinator.simulated_log import error_of

COUNT = 2_500


def test_a_commit_makes_a_simple_group_where_there_is_none() -> None:
    bench = Bench()
    assert bench.start_commit(7).result() == [ErrorCode.none]
    assert bench.committed() == 7
    assert bench.groups.list_groups()[0] == (GROUP, "", "Empty", "classic", 0)
    assert bench.classic.describe(GROUP).protocol_type == ""


@pytest.mark.parametrize(
    ("group_id", "generation_id", "code"),
    [
        ("x" * 32_768, -1, ErrorCode.invalid_group_id),
        ("absent", 3, ErrorCode.group_id_not_found),
        ("shared", -1, ErrorCode.group_id_not_found),
    ],
)
def test_a_commit_needs_a_group(group_id: str, generation_id: int, code: ErrorCode) -> None:
    bench = Bench()
    bench.catalog.create(TOPIC)
    make_share_group(bench, "shared")
    assert error_of(bench.start_commit(group_id=group_id, generation_id=generation_id)) is code


def test_a_commit_with_too_much_metadata_fails_by_itself() -> None:
    bench = Bench()
    codes = bench.start_commit(metadata="m" * 4_097).result()
    assert codes == [ErrorCode.offset_metadata_too_large]
    assert bench.committed() is None


def test_a_commit_is_answered_when_it_is_written() -> None:
    bench = Bench()
    bench.log.held = True
    reply = bench.start_commit()
    assert not reply.done
    assert bench.committed() is None
    bench.log.release()
    assert reply.result() == [ErrorCode.none]
    assert bench.committed() == 5


def test_a_commit_that_cannot_be_written_changes_nothing() -> None:
    bench = Bench()
    bench.log.failing = True
    assert error_of(bench.start_commit()) is ErrorCode.coordinator_not_available
    assert bench.committed() is None
    assert bench.groups.list_groups() == []


def test_many_offsets_are_committed_all_or_none() -> None:
    bench = Bench()
    bench.start_commit(1, partitions=range(COUNT)).result()
    bench.start_commit(2, partitions=range(COUNT)).result()
    assert [len(batch.records) for batch in bench.log.batches] == [COUNT] * 2
