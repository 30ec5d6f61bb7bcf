"""Histories replayed from a log: the outcome of each record, the beginning of history, unknown outcomes."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.pipeline.audit.tables import CHECKPOINT, HISTORY, OPEN, OUTCOME, POISON
from barnabas.pipeline.log_source.errors import CorruptLog
from barnabas.protocol.delivery_state import Cause, StateRange
from tests.pipeline.audit.auditing import Audited, offsets_of, outcomes
from tests.pipeline.audit.written_logs import (
    AVAILABLE,
    WrittenGroup,
    WrittenLog,
    accepted,
    archived,
    released,
)


def test_every_outcome_has_its_cause_and_member(log: WrittenLog, tmp_path: Path) -> None:
    group = WrittenGroup(log)
    group.delta(accepted(0, 4, member="anna"), archived(5, 5, member="anna"))
    group.delta(released(6, 9, member="bert"))
    group.delta(released(6, 6, 2, Cause.LOCK_EXPIRED, "carl"))
    group.delta(archived(6, 6, 3, Cause.DELIVERY_LIMIT, "carl"), archived(7, 7, 1, Cause.GAP, None))
    audited = Audited(tmp_path)
    assert outcomes(audited) == [
        (0, 4, 1, "acknowledged", "accept", "anna", 21),
        (5, 5, 1, "archived", "reject", "anna", 21),
        (6, 9, 1, "available", "release", "bert", 22),
        (6, 6, 2, "available", "lock_expired", "carl", 23),
        (6, 6, 3, "archived", "delivery_limit", "carl", 24),
        (7, 7, 1, "archived", "gap", None, 24),
    ]
    assert audited.violations == []


def test_a_range_that_only_fills_a_gap_is_no_delivery(log: WrittenLog, tmp_path: Path) -> None:
    group = WrittenGroup(log)
    group.delta(StateRange(0, 8, AVAILABLE, 0), accepted(9, 9))
    audited = Audited(tmp_path)
    assert [row[:2] for row in outcomes(audited)] == [(9, 9)]
    assert [(row["firstOffset"], row["lastOffset"]) for row in audited.table(OPEN)] == [(0, 8)]


def test_records_are_counted_without_the_control_records_between_them(tmp_path: Path) -> None:
    log = WrittenLog(tmp_path, "orders")
    log.produce(5)
    group = WrittenGroup(log)
    log.produce(5)
    group.delta(accepted(0, 10))
    log.mark(3)
    log.produce(1)
    group.delta(accepted(11, 15))
    assert [row["recordCount"] for row in Audited(tmp_path).deliveries] == [10, 1]


def test_groups_are_separate_and_may_be_chosen(log: WrittenLog, tmp_path: Path) -> None:
    one, other = WrittenGroup(log, "one"), WrittenGroup(log, "other")
    one.delta(accepted(0, 9))
    other.delta(accepted(0, 4))
    one.delta(accepted(10, 19))
    assert offsets_of(Audited(tmp_path).deliveries, group="one") == list(range(20))
    chosen = Audited(tmp_path, groups=["other"])
    assert {row["group"] for row in chosen.deliveries} == {"other"}
    assert chosen.history["group"] == "other"


def test_history_goes_on_over_segments(log: WrittenLog, tmp_path: Path) -> None:
    group = WrittenGroup(log)
    group.delta(accepted(0, 9))
    log.roll()
    group.delta(accepted(10, 19))
    audited = Audited(tmp_path)
    assert offsets_of(audited.deliveries) == list(range(20))
    assert audited.violations == []


def test_a_checkpoint_has_outcomes_of_its_own_append_without_a_cause(log: WrittenLog, tmp_path: Path) -> None:
    group = WrittenGroup(log)
    group.delta(released(0, 3))
    checkpoint = group.as_checkpoint(
        [
            StateRange(0, 1, AVAILABLE, 2),
            StateRange(2, 3, AVAILABLE, 1),
            accepted(4, 4),
        ]
    )
    group.state(checkpoint._replace(end_offset=5))
    told = [row for row in Audited(tmp_path).deliveries if row["cause"] is None]
    assert [
        (row["firstOffset"], row["lastOffset"], row["outcome"], row["deliveryCount"]) for row in told
    ] == [
        (0, 1, "available", 2),
        (4, 4, "acknowledged", 1),
    ]


def test_records_that_a_checkpoint_passes_at_once_are_unknown(log: WrittenLog, tmp_path: Path) -> None:
    group = WrittenGroup(log)
    group.delta(accepted(2, 2), released(3, 3))
    group.state(group.as_checkpoint()._replace(start_offset=6, end_offset=6, states=()))
    audited = Audited(tmp_path)
    assert offsets_of(audited.deliveries, outcome="unknown") == [0, 1, 3, 4, 5]
    assert [row["untoldRecordCount"] for row in audited.table(CHECKPOINT)] == [0, 5]
    assert audited.violations == []


def test_a_checkpoint_may_have_the_causes_of_its_own_append(log: WrittenLog, tmp_path: Path) -> None:
    group = WrittenGroup(log)
    group.delta(released(0, 3))
    group.state(group.as_checkpoint(changes=[accepted(0, 3, 2)])._replace(start_offset=4, end_offset=4))
    audited = Audited(tmp_path)
    assert outcomes(audited)[-1] == (0, 3, 2, "acknowledged", "accept", "member", 22)
    assert offsets_of(audited.deliveries, outcome="unknown") == []


@pytest.mark.parametrize("state_epoch", [0, 1])
def test_a_reset_begins_another_life(log: WrittenLog, tmp_path: Path, state_epoch: int) -> None:
    group = WrittenGroup(log)
    group.delta(accepted(0, 9))
    group.reset(5, state_epoch=state_epoch)
    group.delta(accepted(5, 9))
    audited = Audited(tmp_path)
    assert audited.violations == []
    assert offsets_of(audited.deliveries, life=0) == list(range(10))
    assert offsets_of(audited.deliveries, life=1) == list(range(5, 10))
    assert [row["kind"] for row in audited.table(CHECKPOINT)] == ["first", "reset"]


@pytest.mark.parametrize("state_epoch", [0, 1])
def test_open_records_that_a_reset_passes_are_unknown(
    log: WrittenLog, tmp_path: Path, state_epoch: int
) -> None:
    group = WrittenGroup(log)
    group.delta(accepted(0, 1), released(2, 3))
    group.reset(6, state_epoch=state_epoch)
    audited = Audited(tmp_path)
    assert offsets_of(audited.deliveries, outcome="unknown") == [2, 3, 4, 5]
    assert [row["untoldRecordCount"] for row in audited.table(CHECKPOINT)] == [0, 4]
    assert audited.violations == []


def test_a_group_made_again_begins_another_life(log: WrittenLog, tmp_path: Path) -> None:
    group = WrittenGroup(log)
    group.delta(accepted(0, 9))
    group.checkpoint(deleted=True)
    again = WrittenGroup(log, incarnation=2)
    again.image.checkpoint_epoch = 2
    audited = Audited(tmp_path)
    assert [row["kind"] for row in audited.table(CHECKPOINT)] == ["first", "tombstone", "begun"]
    assert audited.history["life"] == 1


def test_a_deleted_group_has_no_open_records(log: WrittenLog, tmp_path: Path) -> None:
    group = WrittenGroup(log)
    group.delta(released(0, 9))
    group.checkpoint(deleted=True)
    audited = Audited(tmp_path)
    assert audited.table(OPEN) == []
    assert audited.history["isDeleted"]


def test_history_is_whole_from_the_first_record_on(log: WrittenLog, tmp_path: Path) -> None:
    WrittenGroup(log).delta(accepted(0, 9))
    history = Audited(tmp_path).history
    assert history["begins"] == "whole"
    assert history["firstControlOffset"] == 20
    assert history["firstStartOffset"] == 0


def test_history_is_cut_where_the_log_begins_late(tmp_path: Path) -> None:
    log = WrittenLog(tmp_path, "orders", base_offset=100)
    log.produce(10)
    group = WrittenGroup(log, start_offset=100, is_begun=False)
    group.checkpoint(checkpoint_epoch=7)
    group.delta(accepted(100, 104))
    audited = Audited(tmp_path)
    assert audited.history["begins"] == "cut"
    assert audited.violations == []


def test_deltas_before_the_first_checkpoint_are_reported_after_a_mark_of_cleaning(tmp_path: Path) -> None:
    log = WrittenLog(tmp_path, "orders")
    log.produce(10)
    log.mark(1)
    group = WrittenGroup(log, is_begun=False)
    group.delta(accepted(0, 4))
    group.checkpoint()
    audited = Audited(tmp_path)
    assert offsets_of(audited.deliveries) == list(range(5))
    assert audited.history["orphanDeltaCount"] == 1
    assert audited.history["begins"] == "cut"
    assert audited.violations == []


def test_broker_starts_are_counted_by_their_leader_epochs(log: WrittenLog, tmp_path: Path) -> None:
    group = WrittenGroup(log)
    group.delta(accepted(0, 4))
    log.leader_epoch = 2
    group.delta(accepted(5, 9))
    assert Audited(tmp_path).history["leaderEpochCount"] == 2


def test_the_worst_ranges_are_kept(log: WrittenLog, tmp_path: Path) -> None:
    group = WrittenGroup(log)
    group.delta(accepted(0, 9), released(10, 12, 4), archived(13, 13), accepted(14, 14))
    group.delta(archived(10, 10, 5, Cause.DELIVERY_LIMIT))
    worst = [(row["firstOffset"], row["cause"]) for row in Audited(tmp_path).table(POISON)]
    assert worst == [(10, "delivery_limit"), (13, "reject"), (10, "release")]


def test_outcomes_are_summed_up(log: WrittenLog, tmp_path: Path) -> None:
    group = WrittenGroup(log)
    group.delta(accepted(0, 9))
    group.delta(accepted(10, 14))
    (row,) = Audited(tmp_path).table(OUTCOME)
    assert (row["rangeCount"], row["recordCount"], row["cause"]) == (2, 15, "accept")


def test_a_batch_that_is_still_being_written_is_left_alone(log: WrittenLog, tmp_path: Path) -> None:
    WrittenGroup(log).delta(accepted(0, 9))
    with log.path.open("r+b") as file:
        file.truncate(log.path.stat().st_size - 5)
    audited = Audited(tmp_path)
    assert audited.history["deltaCount"] == 0
    assert audited.violations == []


def test_a_segment_cut_short_is_an_error_that_names_the_file(log: WrittenLog, tmp_path: Path) -> None:
    WrittenGroup(log).delta(accepted(0, 9))
    cut = log.path
    log.roll()
    log.produce(1)
    with cut.open("r+b") as file:
        file.truncate(cut.stat().st_size - 5)
    with pytest.raises(CorruptLog, match=f"{cut.name}: at .*: a batch is cut short"):
        Audited(tmp_path)
    assert Audited(tmp_path, raise_damage=False).checks == ["damaged"]


def test_a_flipped_bit_is_an_error_that_names_the_file(log: WrittenLog, tmp_path: Path) -> None:
    group = WrittenGroup(log)
    group.delta(accepted(0, 4))
    data = bytearray(log.path.read_bytes())
    data[-20] ^= 1
    log.path.write_bytes(data)
    group.delta(accepted(5, 9))
    with pytest.raises(CorruptLog, match="the checksum doesn't match the bytes"):
        Audited(tmp_path)
    audited = Audited(tmp_path, raise_damage=False)
    assert sorted(audited.checks) == ["chain_broken", "damaged"]
    assert offsets_of(audited.deliveries) == [5, 6, 7, 8, 9]


def test_open_is_every_record_that_is_not_done(log: WrittenLog, tmp_path: Path) -> None:
    """Six are accepted, four released, ten new; records that a member holds are not in the log."""
    group = WrittenGroup(log)
    group.delta(accepted(0, 5), released(6, 9))
    assert Audited(tmp_path).history["openRecordCount"] == 14


def test_open_includes_records_behind_everything_that_the_group_recorded(
    log: WrittenLog, tmp_path: Path
) -> None:
    group = WrittenGroup(log)
    group.delta(accepted(0, 19))
    log.produce(5)
    log.roll()
    log.produce(7)
    assert Audited(tmp_path).history["openRecordCount"] == 12
    log.roll()
    assert Audited(tmp_path).history["openRecordCount"] == 12, "the newest segment is empty"
    group.delta(accepted(log.next_offset - 7, log.next_offset - 1))
    assert Audited(tmp_path).history["openRecordCount"] == 5, "without the control records among them"


def test_a_group_that_was_deleted_has_nothing_open(log: WrittenLog, tmp_path: Path) -> None:
    WrittenGroup(log).checkpoint(deleted=True)
    assert Audited(tmp_path).history["openRecordCount"] == 0


def test_open_is_not_known_where_the_state_is_not(log: WrittenLog, tmp_path: Path) -> None:
    log.roll()
    group = WrittenGroup(log, is_begun=False)
    group.delta(accepted(0, 5))
    assert Audited(tmp_path).history["openRecordCount"] is None


def test_records_before_the_offset_where_the_group_begins_are_skipped(
    log: WrittenLog, tmp_path: Path
) -> None:
    WrittenGroup(log, "early", start_offset=0)
    late = WrittenGroup(log, "late", start_offset=10)
    late.delta(accepted(10, 19))
    rows = {row["group"]: row for row in Audited(tmp_path).table(HISTORY)}
    assert (rows["early"]["skippedRecordCount"], rows["late"]["skippedRecordCount"]) == (0, 10)
    assert (rows["late"]["openRecordCount"], rows["late"]["firstStartOffset"]) == (0, 10)


def test_skipped_records_are_counted_without_control_records_and_deleted_ones(tmp_path: Path) -> None:
    log = WrittenLog(tmp_path, "orders")
    log.produce(5)
    WrittenGroup(log, "other")
    log.produce(5)
    late = WrittenGroup(log, "late", start_offset=log.next_offset)
    late.checkpoint()
    assert _skipped(tmp_path, "late") == 10
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\norders 0 3\n")
    assert _skipped(tmp_path, "late") == 7


@pytest.mark.parametrize(("start_offset", "skipped_count"), [(4, 4), (0, 0), (15, 10)])
def test_a_reset_to_an_earlier_offset_makes_skipped_records_available(
    log: WrittenLog, tmp_path: Path, start_offset: int, skipped_count: int
) -> None:
    group = WrittenGroup(log, start_offset=10)
    group.reset(start_offset, state_epoch=1)
    assert Audited(tmp_path).history["skippedRecordCount"] == skipped_count


def test_skipped_records_are_not_known_if_the_history_is_cut(tmp_path: Path) -> None:
    log = WrittenLog(tmp_path, "orders")
    log.produce(20)
    log.mark(1)
    group = WrittenGroup(log, start_offset=10, is_begun=False)
    group.checkpoint(checkpoint_epoch=7)
    history = Audited(tmp_path).history
    assert (history["begins"], history["skippedRecordCount"]) == ("cut", None)


def _skipped(directory: Path, group: str) -> object:
    (row,) = [row for row in Audited(directory).table(HISTORY) if row["group"] == group]
    return row["skippedRecordCount"]
