"""Every check finds the violation that is planted for it, at its place, and no other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.pipeline.audit import live_ranges, share_history
from barnabas.pipeline.audit.checks import MEANINGS, Check
from barnabas.protocol.control_record import ControlType, ShareDelta, control_key
from tests.pipeline.audit.auditing import Audited
from tests.pipeline.audit.written_logs import (
    WrittenGroup,
    WrittenLog,
    accepted,
    archived,
    archiving,
    lettered,
    released,
)

Plant = Callable[[WrittenGroup], object]


def start_back(group: WrittenGroup) -> None:
    group.delta(accepted(0, 9), released(10, 12))
    group.state(group.as_checkpoint([released(8, 12)])._replace(start_offset=8))


def final_below_start(group: WrittenGroup) -> None:
    group.delta(accepted(0, 9))
    group.delta(archived(8, 10))


def final_in_flight(group: WrittenGroup) -> None:
    group.delta(released(0, 4), accepted(5, 9))
    group.delta(archived(6, 7))


def final_released(group: WrittenGroup) -> None:
    group.delta(released(0, 4), accepted(5, 9))
    group.delta(released(9, 9, 2))


def count_back(group: WrittenGroup) -> None:
    group.delta(released(0, 9, 3))
    group.delta(released(4, 5, 2))


def count_back_in_checkpoint(group: WrittenGroup) -> None:
    group.delta(released(0, 9, 3))
    group.state(group.as_checkpoint([released(0, 8, 3), released(9, 9, 2)]))


def final_undone_by_checkpoint(group: WrittenGroup) -> None:
    group.delta(released(0, 4), accepted(5, 9))
    group.state(group.as_checkpoint([released(0, 4), accepted(5, 7), released(8, 9)]))


def final_of_another_kind_in_checkpoint(group: WrittenGroup) -> None:
    group.delta(released(0, 4), accepted(5, 9))
    group.state(group.as_checkpoint([released(0, 4), archived(5, 9)]))


def archiving_released(group: WrittenGroup) -> None:
    group.delta(archiving(0, 4))
    group.delta(released(3, 4))


def archiving_accepted(group: WrittenGroup) -> None:
    group.delta(archiving(0, 4))
    group.delta(accepted(2, 2))


def archiving_released_by_checkpoint(group: WrittenGroup) -> None:
    group.delta(archiving(0, 4))
    group.state(group.as_checkpoint([released(0, 4)]))


def letter_of_an_available_record(group: WrittenGroup) -> None:
    group.delta(released(0, 4), archiving(5, 9))
    group.delta(lettered(4, 6))


def letter_of_a_new_record(group: WrittenGroup) -> None:
    group.delta(lettered(0, 0))


def wrong_back_offset(group: WrittenGroup) -> None:
    group.delta(accepted(0, 0))
    group.log.record(ShareDelta("group", 1, 1, group.log.now_ms, 20, [accepted(1, 1)]))


def wrong_checkpoint_epoch(group: WrittenGroup) -> None:
    group.log.record(ShareDelta("group", 1, 2, group.log.now_ms, 20, [accepted(1, 1)]))


def wrong_incarnation(group: WrittenGroup) -> None:
    group.log.record(ShareDelta("group", 2, 1, group.log.now_ms, 20, [accepted(1, 1)]))


def delta_after_tombstone(group: WrittenGroup) -> None:
    group.checkpoint(deleted=True)
    group.delta(accepted(0, 0))


def same_checkpoint_epoch(group: WrittenGroup) -> None:
    group.checkpoint(checkpoint_epoch=1)


def earlier_state_epoch(group: WrittenGroup) -> None:
    group.reset(0, state_epoch=5)
    group.state(group.as_checkpoint()._replace(state_epoch=4))


def earlier_incarnation(group: WrittenGroup) -> None:
    group.state(group.as_checkpoint()._replace(group_incarnation=0))


def ahead_of_the_log(group: WrittenGroup) -> None:
    group.delta(accepted(0, 30))


def unreadable_delta(group: WrittenGroup) -> None:
    value = b"\x00\x01\x01\x00\x00\x06group" + bytes(60) + b"\xff\xff"
    group.log.control(control_key(ControlType.SHARE_DELTA), value)


def unreadable_checkpoint(group: WrittenGroup) -> None:
    value = b"\x00\x01\x01\x00\x00\x06group" + bytes(30)
    group.log.control(control_key(ControlType.SHARE_CHECKPOINT), value)


PLANTED = [
    (start_back, Check.START_OFFSET_BACK, 8, 9),
    (final_below_start, Check.FINAL_CHANGED, 8, 9),
    (final_in_flight, Check.FINAL_CHANGED, 6, 7),
    (final_released, Check.FINAL_CHANGED, 9, 9),
    (count_back, Check.DELIVERY_COUNT_BACK, 4, 5),
    (count_back_in_checkpoint, Check.CHECKPOINT_DIFFERS, 9, 9),
    (final_undone_by_checkpoint, Check.CHECKPOINT_DIFFERS, 8, 9),
    (final_of_another_kind_in_checkpoint, Check.CHECKPOINT_DIFFERS, 5, 9),
    (archiving_released, Check.ARCHIVING_LEFT, 3, 4),
    (archiving_accepted, Check.ARCHIVING_LEFT, 2, 2),
    (archiving_released_by_checkpoint, Check.CHECKPOINT_DIFFERS, 0, 4),
    (letter_of_an_available_record, Check.LETTER_NOT_DUE, 4, 4),
    (letter_of_a_new_record, Check.LETTER_NOT_DUE, 0, 0),
    (wrong_back_offset, Check.CHAIN_BROKEN, -1, -1),
    (wrong_checkpoint_epoch, Check.CHAIN_BROKEN, -1, -1),
    (wrong_incarnation, Check.CHAIN_BROKEN, -1, -1),
    (delta_after_tombstone, Check.AFTER_TOMBSTONE, -1, -1),
    (same_checkpoint_epoch, Check.CHECKPOINT_EPOCH_BACK, -1, -1),
    (earlier_state_epoch, Check.STATE_EPOCH_BACK, -1, -1),
    (earlier_incarnation, Check.INCARNATION_BACK, -1, -1),
    (ahead_of_the_log, Check.BEYOND_THE_LOG, 0, 30),
    (unreadable_delta, Check.MALFORMED, -1, -1),
    (unreadable_checkpoint, Check.MALFORMED, -1, -1),
]


@pytest.mark.parametrize(
    ("plant", "check", "first", "last"), PLANTED, ids=[plant.__name__ for plant, *_ in PLANTED]
)
def test_planted_violations_are_found(
    log: WrittenLog, tmp_path: Path, plant: Plant, check: Check, first: int, last: int
) -> None:
    plant(WrittenGroup(log))
    planted_at = log.next_offset - 1
    (violation,) = Audited(tmp_path).violations
    assert violation["check"] == check
    assert (violation["firstOffset"], violation["lastOffset"]) == (first, last)
    assert violation["controlOffset"] == planted_at
    assert violation["detail"]


@pytest.mark.parametrize("begin", ["delta", "later checkpoint"])
def test_a_whole_log_that_lacks_the_beginning_is_found(log: WrittenLog, tmp_path: Path, begin: str) -> None:
    group = WrittenGroup(log, is_begun=False)
    if begin == "delta":
        group.delta(accepted(0, 0))
    else:
        group.checkpoint(checkpoint_epoch=3)
    assert Audited(tmp_path).checks == ["chain_broken"]


def test_checks_go_on_with_the_next_checkpoint(log: WrittenLog, tmp_path: Path) -> None:
    group = WrittenGroup(log)
    wrong_back_offset(group)
    group.log.record(ShareDelta("group", 1, 1, log.now_ms, 20, [accepted(1, 1)]))
    group.checkpoint(checkpoint_epoch=2)
    group.delta(accepted(1, 3))
    group.delta(accepted(3, 3))
    audited = Audited(tmp_path)
    assert audited.checks == ["chain_broken", "final_changed"]
    assert audited.history["orphanDeltaCount"] == 2


def test_a_range_over_control_records_below_the_start_is_no_contradiction(tmp_path: Path) -> None:
    log = WrittenLog(tmp_path, "orders")
    log.produce(5)
    group = WrittenGroup(log)
    log.produce(5)
    group.delta(accepted(0, 5))
    group.delta(accepted(5, 10))
    assert Audited(tmp_path).violations == []


def test_more_ranges_than_the_bound_are_reported(
    log: WrittenLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_ranges, "RANGES_MAX", 3)
    group = WrittenGroup(log)
    group.delta(*[released(offset, offset) for offset in (0, 2, 4, 6)])
    group.delta(accepted(0, 6, 2))
    group.checkpoint()
    group.delta(accepted(7, 9))
    audited = Audited(tmp_path)
    assert audited.checks == ["not_followed"]
    assert audited.history["endOffset"] == 10


def test_violations_are_bounded_and_counted(
    log: WrittenLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(share_history, "VIOLATIONS_MAX", 2)
    group = WrittenGroup(log)
    for _ in range(5):
        group.delta(accepted(0, 0))
    audited = Audited(tmp_path)
    assert len(audited.violations) == 2
    assert audited.history["violationCount"] == 4


def test_each_check_has_a_meaning() -> None:
    assert set(MEANINGS) == set(Check)
