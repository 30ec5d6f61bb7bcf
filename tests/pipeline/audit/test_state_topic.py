"""Share state in `__share_group_state`, as Apache Kafka keeps it: snapshots and updates become a history."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

import pytest

from barnabas.pipeline.audit.source import decode_plan, encode_plan
from barnabas.pipeline.audit.tables import HISTORY, OPEN, VIOLATION
from barnabas.protocol.delivery_state import Cause, LetterPlace, encode_condition
from barnabas.protocol.record_batch import build_batch
from barnabas.protocol.share_state_records import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareStateRecord,
    ShareUpdateKey,
    ShareUpdateValue,
    StateBatchValue,
    encode_share_state_record,
)
from barnabas.storage.format.partition_metadata import FILE_NAME, encode_partition_metadata
from tests.pipeline.audit.auditing import Row
from tests.pipeline.audit.state_topic import AuditedStateTopic
from tests.pipeline.audit.written_logs import WrittenLog

TOPIC_ID = UUID(int=7)
AVAILABLE, ACKNOWLEDGED, ARCHIVING, ARCHIVED = 0, 2, 3, 4

Batch = tuple[int, int, int, int]
"""First and last offset, state, delivery count."""


class WrittenStateTopic:
    """A topic of 20 records, and a state topic for one group that reads it."""

    def __init__(self, directory: Path) -> None:
        self.data = WrittenLog(directory, "orders")
        self.data.produce(20)
        (directory / "orders-0" / FILE_NAME).write_bytes(encode_partition_metadata(TOPIC_ID))
        self._log = WrittenLog(directory, "__share_group_state", 4)
        self._directory = directory
        self.snapshot_epoch = -1

    def snapshot(
        self, start_offset: int, *batches: Batch, state_epoch: int = 1, condition: bytes = b""
    ) -> int:
        self.snapshot_epoch += 1
        value = ShareSnapshotValue(
            snapshot_epoch=self.snapshot_epoch,
            state_epoch=state_epoch,
            leader_epoch=1,
            start_offset=start_offset,
            create_timestamp_ms=0,
            write_timestamp_ms=0,
            state_batches=values(batches, condition),
        )
        return self.write((ShareSnapshotKey(group_id="g", topic_id=TOPIC_ID, partition=0), value))

    def update(self, *batches: Batch, start_offset: int = -1, condition: bytes = b"") -> int:
        value = ShareUpdateValue(
            snapshot_epoch=self.snapshot_epoch,
            leader_epoch=1,
            start_offset=start_offset,
            state_batches=values(batches, condition),
        )
        return self.write((ShareUpdateKey(group_id="g", topic_id=TOPIC_ID, partition=0), value))

    def tombstone(self) -> int:
        return self.write((ShareSnapshotKey(group_id="g", topic_id=TOPIC_ID, partition=0), None))

    def write(self, record: ShareStateRecord) -> int:
        batch = build_batch(
            self._log.next_offset,
            [encode_share_state_record(record)],
            leader_epoch=1,
            timestamp_ms=self._log.now_ms,
        )
        return self._log.write(batch)

    def audited(self) -> AuditedStateTopic:
        return AuditedStateTopic(self._directory)

    @property
    def history(self) -> Row:
        (row,) = self.audited().table(HISTORY)
        return row


def values(batches: Sequence[Batch], condition: bytes) -> tuple[StateBatchValue, ...]:
    return tuple(
        StateBatchValue(
            first_offset=first,
            last_offset=last,
            delivery_state=state,
            delivery_count=count,
            condition=condition,
        )
        for first, last, state, count in batches
    )


def outcomes(audited: AuditedStateTopic) -> list[tuple[object, ...]]:
    names = ("firstOffset", "lastOffset", "deliveryCount", "outcome", "controlOffset")
    return [tuple(row[name] for name in names) for row in audited.deliveries]


@pytest.fixture
def topic(tmp_path: Path) -> WrittenStateTopic:
    return WrittenStateTopic(tmp_path)


def test_updates_have_outcomes_without_cause_and_member(topic: WrittenStateTopic) -> None:
    topic.snapshot(0)
    topic.update((0, 4, ACKNOWLEDGED, 1), (5, 9, AVAILABLE, 1))
    topic.update((5, 5, ARCHIVED, 2), start_offset=5)
    audited = topic.audited()
    assert outcomes(audited) == [
        (0, 4, 1, "acknowledged", 1),
        (5, 9, 1, "available", 1),
        (5, 5, 2, "archived", 2),
    ]
    assert {(row["cause"], row["member"]) for row in audited.deliveries} == {(None, None)}
    assert audited.table(VIOLATION) == []
    history = topic.history
    assert (history["topic"], history["partition"], history["group"]) == ("orders", 0, "g")
    assert (history["begins"], history["startOffset"], history["openRecordCount"]) == ("whole", 6, 14)


def test_a_share_partition_begins_once_its_start_offset_is_decided(topic: WrittenStateTopic) -> None:
    topic.snapshot(-1)
    assert topic.audited().table(HISTORY) == []
    topic.update((10, 12, ACKNOWLEDGED, 1), start_offset=10)
    history = topic.history
    assert (history["begins"], history["firstStartOffset"], history["startOffset"]) == ("whole", 10, 13)
    assert history["openRecordCount"] == 7
    assert outcomes(topic.audited()) == [(10, 12, 1, "acknowledged", 1)]


def test_outcomes_that_only_a_snapshot_has_are_reported(topic: WrittenStateTopic) -> None:
    topic.snapshot(0)
    topic.update((0, 1, ACKNOWLEDGED, 1))
    topic.snapshot(2, (3, 3, ACKNOWLEDGED, 1))
    assert outcomes(topic.audited()) == [(0, 1, 1, "acknowledged", 1), (3, 3, 1, "acknowledged", 2)]


def test_records_that_the_start_offset_passed_have_an_unknown_outcome(topic: WrittenStateTopic) -> None:
    topic.snapshot(0)
    topic.update((0, 1, ACKNOWLEDGED, 1))
    topic.update(start_offset=8)
    assert outcomes(topic.audited()) == [(0, 1, 1, "acknowledged", 1), (2, 7, None, "unknown", 2)]
    assert topic.history["openRecordCount"] == 12


def test_a_repeated_or_late_write_changes_nothing(topic: WrittenStateTopic) -> None:
    topic.snapshot(0)
    topic.update((2, 4, ACKNOWLEDGED, 1))
    topic.update((2, 4, ACKNOWLEDGED, 1))
    topic.update((3, 3, AVAILABLE, 1))
    audited = topic.audited()
    assert outcomes(audited) == [(2, 4, 1, "acknowledged", 1)]
    assert audited.table(VIOLATION) == []


def test_a_record_on_its_way_to_a_dead_letter_topic_is_open(topic: WrittenStateTopic) -> None:
    topic.snapshot(0)
    topic.update((0, 0, ARCHIVING, 1))
    assert outcomes(topic.audited()) == [(0, 0, 1, "archiving", 1)]
    assert [row["state"] for row in topic.audited().table(OPEN)] == ["archiving"]
    assert topic.history["openRecordCount"] == 20
    topic.update((0, 0, ARCHIVED, 1))
    assert outcomes(topic.audited()) == [(0, 0, 1, "archived", 1)]
    assert topic.history["openRecordCount"] == 19
    assert topic.audited().table(VIOLATION) == []


@pytest.mark.parametrize(
    ("condition", "cause"),
    [(b"", None), (encode_condition(LetterPlace(Cause.REJECT)), "reject")],
    ids=["of Apache Kafka", "of Barnabas"],
)
def test_a_dead_letter_has_its_reason_if_the_state_names_it(
    topic: WrittenStateTopic, condition: bytes, cause: str | None
) -> None:
    topic.snapshot(0)
    topic.update((0, 1, ARCHIVING, 2), condition=condition)
    topic.snapshot(0, (0, 1, ARCHIVING, 2), condition=condition)
    topic.update((0, 0, ARCHIVED, 2))
    rows = [
        (row["firstOffset"], row["outcome"], row["cause"], row["letter"])
        for row in topic.audited().deliveries
    ]
    assert rows == [(0, "archived", cause, "unknown"), (1, "archiving", cause, "due")]
    assert topic.audited().table(VIOLATION) == []


def test_a_dead_letter_that_only_snapshots_have_is_one_outcome(topic: WrittenStateTopic) -> None:
    topic.snapshot(0)
    topic.snapshot(0, (0, 0, ARCHIVING, 1))
    topic.snapshot(1)
    assert outcomes(topic.audited()) == [(0, 0, 1, "archived", 1)]
    assert topic.audited().table(VIOLATION) == []


def test_an_altered_start_offset_begins_another_life(topic: WrittenStateTopic) -> None:
    topic.snapshot(0)
    topic.update((0, 9, ACKNOWLEDGED, 1))
    topic.snapshot(4, state_epoch=2)
    audited = topic.audited()
    assert audited.table(VIOLATION) == []
    assert (topic.history["life"], topic.history["openRecordCount"]) == (1, 16)


def test_a_deleted_group_has_nothing_open(topic: WrittenStateTopic) -> None:
    topic.snapshot(0)
    topic.tombstone()
    assert (topic.history["isDeleted"], topic.history["openRecordCount"]) == (True, 0)


def test_a_state_topic_that_was_compacted_has_a_cut_history(topic: WrittenStateTopic) -> None:
    topic.snapshot_epoch = 6  # compaction has taken the earlier ones
    topic.update((5, 5, ACKNOWLEDGED, 1))
    topic.snapshot(5, (5, 5, ACKNOWLEDGED, 1), (7, 7, AVAILABLE, 2))
    history = topic.history
    assert (history["begins"], history["orphanDeltaCount"], history["startOffset"]) == ("cut", 1, 6)
    assert [(row["firstOffset"], row["deliveryCount"]) for row in topic.audited().table(OPEN)] == [
        (6, 0),
        (7, 2),
    ]
    assert topic.audited().table(VIOLATION) == []


def test_state_of_a_missing_topic_is_ignored(topic: WrittenStateTopic, tmp_path: Path) -> None:
    topic.snapshot(0)
    (tmp_path / "orders-0" / FILE_NAME).write_bytes(encode_partition_metadata(UUID(int=8)))
    assert topic.audited().table(HISTORY) == []


def test_only_the_chosen_groups_are_reported(topic: WrittenStateTopic, tmp_path: Path) -> None:
    topic.snapshot(0)
    assert AuditedStateTopic(tmp_path, groups=["other"]).table(HISTORY) == []
    assert len(AuditedStateTopic(tmp_path, groups=["g"]).table(HISTORY)) == 1


def test_a_task_survives_being_an_option(topic: WrittenStateTopic) -> None:
    topic.snapshot(0)
    tasks = topic.audited().tasks
    assert tasks
    assert decode_plan(encode_plan(tasks)) == tasks
