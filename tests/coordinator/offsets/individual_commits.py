"""Commits of ranges of offsets, and their records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from barnabas.coordinator.group.member_identity import MemberIdentity
from barnabas.coordinator.group.records import decode_record
from barnabas.coordinator.offsets.requests import NO_START, CommitRequest, OffsetToCommit, TransactionalCommit
from barnabas.coordinator.replay.interfaces import TransactionMarker
from barnabas.protocol.classic_group_records import NO_TOPIC_ID, OffsetCommitValue
from barnabas.protocol.committed_ranges import OffsetRange
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import ProducerIdentity, TopicIdPartition
from barnabas.protocol.offset_range_records import OffsetRangeKey
from barnabas.runtime.completion import Completion
from tests.coordinator.classic.classic_bench import GROUP, NO_MEMBER, TOPIC, Bench
from tests.coordinator.group.partition_count import partition_of_group
from tests.coordinator.offsets.transactions import PRODUCER, WAIT_MS, agree

State = tuple[int | None, list[tuple[int, int]]]
"""The stable offset, and the ranges beyond it."""


FIRST_PARTITION = TopicIdPartition(NO_TOPIC_ID, 0)


def _request(
    ranges: Mapping[TopicIdPartition, Sequence[tuple[int, int]]],
    start: int,
    member: MemberIdentity,
    generation_id: int,
    group_id: str,
) -> CommitRequest:
    offsets = [
        OffsetToCommit(TOPIC, *partition, start, 3, "", [OffsetRange(*one) for one in named])
        for partition, named in ranges.items()
    ]
    return CommitRequest(group_id, member, generation_id, offsets, tells_not_found=True)


def commit_ranges(
    bench: Bench,
    *ranges: tuple[int, int],
    start: int = -1,
    member: MemberIdentity = NO_MEMBER,
    generation_id: int = -1,
    group_id: str = GROUP,
    partition: TopicIdPartition = FIRST_PARTITION,
) -> Completion[list[ErrorCode]]:
    """Commit ranges; `start` is the position at which the group begins if it has no committed offset."""
    request = _request({partition: ranges}, start, member, generation_id, group_id)
    return bench.offsets.commit(request, now_ms=bench.now_ms)


def transactional_ranges(
    bench: Bench,
    ranges: Mapping[TopicIdPartition, Sequence[tuple[int, int]]],
    *,
    producer: ProducerIdentity = PRODUCER,
    member: MemberIdentity = NO_MEMBER,
    generation_id: int = -1,
    group_id: str = GROUP,
    check: Callable[[], None] = agree,
) -> TransactionalCommit:
    """A commit of the ranges of several partitions."""
    request = _request(ranges, NO_START, member, generation_id, group_id)
    return TransactionalCommit(request, producer, check, bench.now_ms + WAIT_MS)


def commit_ranges_in_transaction(
    bench: Bench,
    *ranges: tuple[int, int],
    partition: TopicIdPartition = FIRST_PARTITION,
    **options: Any,
) -> Completion[list[ErrorCode]]:
    """See `transactional_ranges` for the options."""
    return bench.offsets.commit_in_transaction(transactional_ranges(bench, {partition: ranges}, **options))


def end_transaction(bench: Bench, *, commit: bool, producer: ProducerIdentity = PRODUCER) -> None:
    marker = TransactionMarker(producer, 1, commit)
    bench.groups.end_transaction(partition_of_group(GROUP), marker).result()


def state(bench: Bench, group_id: str = GROUP) -> State:
    (found,) = bench.offsets.fetch(group_id, {TOPIC: [0]}, with_ranges=True)
    stable_offset = None if found.committed is None else found.committed.offset - 1
    return stable_offset, [(one.first_offset, one.last_offset) for one in found.ranges]


def last_records(bench: Bench) -> list[str]:
    """The records of the last batch: `stable 42`, `offset 43` of an ordinary commit, `+45-47`, `-50-50`."""
    return [_text(*record) for record in bench.log.batches[-1].records]


def _text(key: bytes, value: bytes | None) -> str:
    record = decode_record(key, value)
    assert record is not None
    if isinstance(record[0], OffsetRangeKey):
        return f"{'-' if value is None else '+'}{record[0].first_offset}-{record[0].last_offset}"
    assert isinstance(record[1], OffsetCommitValue | None)
    if record[1] is None:
        return "no offset"
    return f"stable {record[1].offset - 1}" if record[1].keeps_ranges else f"offset {record[1].offset}"
