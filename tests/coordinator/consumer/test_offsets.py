"""Offsets of consumer groups: who may commit and read them, deletion, expiry."""

from __future__ import annotations

import pytest

from barnabas.coordinator.group.member_identity import MemberIdentity
from barnabas.coordinator.offsets.requests import CommitRequest, OffsetToCommit
from barnabas.coordinator.offsets.settings import OffsetSettings
from barnabas.protocol.errors import ApiError, ErrorCode
from tests.coordinator.classic.classic_bench import GROUP, TOPIC
from tests.coordinator.consumer.consumer_bench import ConsumerBench
from tests.coordinator.simulated_log import error_of

RETENTION = OffsetSettings(retention_ms=100_000, retention_check_interval_ms=10_000)


def _commit(
    bench: ConsumerBench, member_id: str, epoch: int, partition: int = 0, *, version: int = 9
) -> ErrorCode:
    offset = OffsetToCommit(TOPIC, bench.topic_id, partition, 5, -1, "")
    identity = MemberIdentity(member_id, None)
    request = CommitRequest(GROUP, identity, epoch, [offset], tells_not_found=version >= 9)
    return error_of(bench.offsets.commit(request, now_ms=bench.now_ms))


def test_a_member_commits_at_its_epoch() -> None:
    bench = ConsumerBench()
    bench.join("a")
    assert _commit(bench, "a", 2) is ErrorCode.none
    assert bench.committed() == 5


@pytest.mark.parametrize(
    ("member_id", "epoch", "version", "code"),
    [
        ("a", 3, 9, ErrorCode.stale_member_epoch),
        ("a", 1, 9, ErrorCode.stale_member_epoch),
        ("b", 2, 9, ErrorCode.unknown_member_id),
        ("", -1, 9, ErrorCode.unknown_member_id),
        ("a", 2, 8, ErrorCode.unsupported_version),
    ],
)
def test_others_cannot_commit(member_id: str, epoch: int, version: int, code: ErrorCode) -> None:
    bench = ConsumerBench()
    bench.join("a")
    assert _commit(bench, member_id, epoch, version=version) is code


def test_an_older_epoch_is_taken_for_partitions_that_the_member_has_had_since() -> None:
    bench = ConsumerBench()
    bench.join("a")
    bench.join("b")
    bench.settle_members("a", "b")
    assert bench.member("a").member_epoch == 3
    assert _commit(bench, "a", 2, partition=0) is ErrorCode.none
    assert _commit(bench, "a", 2, partition=5) is ErrorCode.stale_member_epoch
    assert _commit(bench, "b", 2, partition=5) is ErrorCode.stale_member_epoch


def test_anybody_commits_for_a_group_without_members() -> None:
    bench = ConsumerBench()
    bench.join("a")
    bench.leave_group("a")
    assert _commit(bench, "", -1) is ErrorCode.none


def test_a_member_reads_offsets_at_its_epoch_and_an_administrator_at_any_time() -> None:
    bench = ConsumerBench()
    bench.join("a")
    _commit(bench, "a", 2)
    for member_id, epoch, code in (
        (None, -1, None),
        ("a", 2, None),
        ("a", 1, ErrorCode.stale_member_epoch),
        ("b", 2, ErrorCode.unknown_member_id),
    ):
        try:
            bench.offsets.fetch(GROUP, None, member_id=member_id, member_epoch=epoch)
        except ApiError as error:
            assert error.code is code
        else:
            assert code is None


def test_offsets_of_topics_that_are_read_are_not_deleted() -> None:
    bench = ConsumerBench()
    bench.join("a")
    _commit(bench, "a", 2)
    assert bench.offsets.delete(GROUP, [(TOPIC, 0)]).result() == [ErrorCode.group_subscribed_to_topic]
    bench.leave_group("a")
    assert bench.offsets.delete(GROUP, [(TOPIC, 0)]).result() == [ErrorCode.none]
    assert bench.committed() is None


def test_a_group_is_deleted_with_its_offsets_once_it_is_empty() -> None:
    bench = ConsumerBench()
    bench.join("a")
    _commit(bench, "a", 2)
    assert error_of(bench.groups.delete_group(GROUP)) is ErrorCode.non_empty_group
    bench.leave_group("a")
    bench.groups.delete_group(GROUP).result()
    assert bench.groups.list_groups() == []
    bench.restart()
    assert bench.groups.list_groups() == []
    assert bench.committed() is None


def test_an_empty_group_goes_when_its_last_offset_has_expired() -> None:
    bench = ConsumerBench(offset_settings=RETENTION)
    bench.join("a")
    _commit(bench, "a", 2)
    bench.leave_group("a")
    bench.advance(99_000)
    assert [one.group_id for one in bench.groups.list_groups()] == [GROUP]
    bench.advance(1_000)
    assert bench.groups.list_groups() == []


def test_offsets_of_topics_that_are_read_do_not_expire() -> None:
    bench = ConsumerBench(offset_settings=RETENTION)
    bench.join("a")
    _commit(bench, "a", 2)
    for _ in range(10):
        bench.advance(30_000)
        bench.beat("a")
    assert bench.committed() == 5


def test_a_deleted_topic_takes_its_offsets_along() -> None:
    bench = ConsumerBench()
    bench.join("a")
    _commit(bench, "a", 2)
    bench.catalog.delete(TOPIC)
    bench.groups.on_metadata_changed([TOPIC], has_new=False)
    bench.groups.on_topics_deleted({TOPIC: bench.topic_id})
    assert bench.committed() is None


def test_the_offsets_of_an_unloaded_partition_are_forgotten() -> None:
    bench = ConsumerBench()
    bench.join("a")
    _commit(bench, "a", 2)
    bench.log.batches.pop()
    bench.reload()
    assert bench.committed() is None
