"""Records with dead letters (KIP-1191): one outcome for each delivery, with the reason and the letter."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.pipeline.audit import log_walk
from barnabas.pipeline.audit.tables import CHECKPOINT, HISTORY, OPEN, OUTCOME, POISON
from barnabas.protocol.control_record import ControlType, control_key
from barnabas.protocol.delivery_state import Cause, StateRange, is_final
from tests.pipeline.audit.auditing import Audited, offsets_of
from tests.pipeline.audit.written_logs import (
    ARCHIVING,
    AVAILABLE,
    WrittenGroup,
    WrittenLog,
    accepted,
    archived,
    archiving,
    lettered,
    released,
)

Steps = list[tuple[str, int, int]]
"""The kind of a step, and the first offset and the size of its range."""


def outcomes(audited: Audited) -> list[tuple[object, ...]]:
    names = ("firstOffset", "lastOffset", "outcome", "cause", "letter", "member", "controlOffset")
    return [tuple(row[name] for name in names) for row in audited.deliveries]


def test_a_rejected_record_with_its_letter_is_one_outcome(log: WrittenLog, tmp_path: Path) -> None:
    group = WrittenGroup(log)
    group.delta(archiving(0, 1, 2, member="anna"), accepted(2, 4, member="anna"))
    group.delta(archiving(0, 1, 2, member=None))  # the letters get another place
    group.delta(lettered(0, 1, 2))
    audited = Audited(tmp_path)
    assert outcomes(audited) == [
        (2, 4, "acknowledged", "accept", None, "anna", 21),
        (0, 1, "archived", "reject", "written", "anna", 21),
    ]
    sums = [(row["outcome"], row["recordCount"], row.get("letter")) for row in audited.table(OUTCOME)]
    assert sorted(sums, key=str) == [("acknowledged", 3, None), ("archived", 2, "written")]
    assert audited.table(OPEN) == []
    assert (audited.history["startOffset"], audited.history["openRecordCount"]) == (5, 15)
    assert audited.violations == []


def test_a_record_on_its_way_is_open(log: WrittenLog, tmp_path: Path) -> None:
    group = WrittenGroup(log)
    group.delta(archiving(0, 0, 5, Cause.DELIVERY_LIMIT))
    group.delta(accepted(1, 3))
    audited = Audited(tmp_path)
    assert outcomes(audited) == [
        (1, 3, "acknowledged", "accept", None, "member", 22),
        (0, 0, "archiving", "delivery_limit", "due", "member", 21),
    ]
    (row,) = audited.table(OPEN)
    assert (row["firstOffset"], row["lastOffset"], row["state"], row["deliveryCount"]) == (
        0,
        0,
        "archiving",
        5,
    )
    assert (audited.history["startOffset"], audited.history["openRecordCount"]) == (0, 17)
    assert audited.violations == []


def test_letters_of_one_rejection_may_end_one_by_one(log: WrittenLog, tmp_path: Path) -> None:
    group = WrittenGroup(log)
    group.delta(archiving(0, 9))
    group.delta(lettered(3, 4))
    group.delta(lettered(0, 0, cause=Cause.LETTER_FAILED))
    audited = Audited(tmp_path)
    assert offsets_of(audited.deliveries, letter="written", outcome="archived") == [3, 4]
    assert offsets_of(audited.deliveries, letter="failed", outcome="archived") == [0]
    assert offsets_of(audited.deliveries, letter="due", outcome="archiving") == [1, 2, 5, 6, 7, 8, 9]
    assert offsets_of(audited.table(OPEN), state="archiving") == [1, 2, 5, 6, 7, 8, 9]


def test_a_lost_letter_is_the_worst_of_all(log: WrittenLog, tmp_path: Path) -> None:
    group = WrittenGroup(log)
    group.delta(archiving(0, 0), archiving(1, 1, 5, Cause.DELIVERY_LIMIT))
    group.delta(lettered(1, 1, 5), lettered(0, 0, cause=Cause.LETTER_FAILED))
    audited = Audited(tmp_path)
    worst = [(row["firstOffset"], row["cause"], row["letter"]) for row in audited.table(POISON)]
    assert worst == [(0, "reject", "failed"), (1, "delivery_limit", "written")]
    assert audited.violations == [], "the settings of the group allow it"


def test_a_letter_may_end_in_a_later_part_of_the_log(
    log: WrittenLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_walk, "READ_BYTES", 300)
    monkeypatch.setattr(log_walk, "PACK_BYTES", 1)
    group = WrittenGroup(log)
    group.delta(archiving(0, 1, member="anna"))
    for offset in range(2, 12):
        group.delta(accepted(offset, offset))
    group.delta(lettered(0, 1))
    audited = Audited(tmp_path)
    assert outcomes(audited)[-1] == (0, 1, "archived", "reject", "written", "anna", 21)
    assert len(audited.deliveries) == 11


def test_a_checkpoint_that_begins_a_letter_has_its_reason(log: WrittenLog, tmp_path: Path) -> None:
    group = WrittenGroup(log)
    group.delta(released(0, 3))
    group.checkpoint(archiving(0, 0, 2))
    group.delta(lettered(0, 0, 2))
    audited = Audited(tmp_path)
    assert outcomes(audited)[-1] == (0, 0, "archived", "reject", "written", None, 22)
    assert [row["untoldRecordCount"] for row in audited.table(CHECKPOINT)] == [0, 1]
    assert audited.violations == []


@pytest.mark.parametrize("is_passed", [True, False])
def test_a_letter_that_ended_with_a_checkpoint_may_be_written_or_not(
    log: WrittenLog, tmp_path: Path, is_passed: bool
) -> None:
    group = WrittenGroup(log)
    first = 0 if is_passed else 5
    group.delta(released(0, 4), archiving(first, first))
    group.checkpoint(lettered(first, first), start_offset=1 if is_passed else 0)
    audited = Audited(tmp_path)
    assert outcomes(audited)[-1] == (first, first, "archived", "reject", "unknown", "member", 21)
    assert audited.violations == []


def test_a_checkpoint_may_have_the_cause_of_a_letters_end(log: WrittenLog, tmp_path: Path) -> None:
    group = WrittenGroup(log)
    group.delta(released(0, 0), archiving(1, 1))
    group.state(group.as_checkpoint([released(0, 0)], changes=[lettered(1, 1)]))
    audited = Audited(tmp_path)
    assert outcomes(audited)[-1] == (1, 1, "archived", "reject", "written", "member", 21)
    assert audited.violations == []


def test_a_letter_that_was_due_before_the_history_begins_has_its_reason(tmp_path: Path) -> None:
    log = WrittenLog(tmp_path, "orders", base_offset=100)
    log.produce(10)
    group = WrittenGroup(log, start_offset=100, is_begun=False)
    group.checkpoint(archiving(100, 101), checkpoint_epoch=7)
    group.delta(lettered(100, 100))
    audited = Audited(tmp_path)
    assert outcomes(audited) == [
        (100, 100, "archived", "reject", "written", None, 110),
        (101, 101, "archiving", "reject", "due", None, 110),
    ]
    assert audited.violations == []


def test_the_end_of_a_letter_without_its_beginning_is_an_outcome_by_itself(tmp_path: Path) -> None:
    log = WrittenLog(tmp_path, "orders")
    log.produce(10)
    log.mark(1)
    group = WrittenGroup(log, is_begun=False)
    group.delta(lettered(0, 4), lettered(5, 5, cause=Cause.LETTER_FAILED))
    audited = Audited(tmp_path)
    assert outcomes(audited) == [
        (0, 4, "archived", "dead_letter", "written", None, 11),
        (5, 5, "archived", "letter_failed", "failed", None, 11),
    ]
    assert audited.violations == []


def test_a_letter_that_ended_in_a_gap_of_the_history_has_an_outcome(log: WrittenLog, tmp_path: Path) -> None:
    group = WrittenGroup(log)
    group.delta(archiving(0, 2))
    group.log.control(control_key(ControlType.SHARE_DELTA), b"\x00\x01\x01\x00\x00\x06group")
    group.checkpoint(lettered(0, 0), checkpoint_epoch=2)
    audited = Audited(tmp_path)
    assert audited.checks == ["malformed"]
    assert offsets_of(audited.deliveries, outcome="archived", letter="unknown") == [0]
    assert offsets_of(audited.deliveries, outcome="archiving", letter="due") == [1, 2]


@pytest.mark.parametrize("ending", ["reset", "tombstone"])
def test_a_state_that_ends_leaves_letters_unknown(log: WrittenLog, tmp_path: Path, ending: str) -> None:
    group = WrittenGroup(log)
    group.delta(archiving(0, 2))
    if ending == "reset":
        group.reset(0, state_epoch=1)
    else:
        group.checkpoint(deleted=True)
    audited = Audited(tmp_path)
    (row,) = audited.deliveries
    assert (row["outcome"], row["letter"], row["life"]) == ("archiving", "unknown", 0)
    assert audited.table(OPEN) == []
    assert audited.violations == []


def test_records_that_the_log_start_removes_end_with_their_reason(log: WrittenLog, tmp_path: Path) -> None:
    group = WrittenGroup(log)
    group.delta(released(0, 0), archiving(1, 2), released(3, 9))
    group.delta(archived(0, 4, cause=Cause.LOG_START, member=None))
    audited = Audited(tmp_path)
    assert offsets_of(audited.deliveries, outcome="archived", cause="reject", letter="unknown") == [1, 2]
    assert offsets_of(audited.deliveries, outcome="archived", cause="log_start") == [0, 3, 4]
    assert audited.violations == []


def test_a_record_that_leaves_its_way_has_both_outcomes(log: WrittenLog, tmp_path: Path) -> None:
    group = WrittenGroup(log)
    group.delta(archiving(0, 1))
    group.delta(accepted(0, 1))
    audited = Audited(tmp_path)
    assert audited.checks == ["archiving_left"]
    assert [row[2:5] for row in outcomes(audited)] == [
        ("archiving", "reject", "unknown"),
        ("acknowledged", "accept", None),
    ]


def test_letters_count_for_the_bound_of_the_memory(
    log: WrittenLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.pipeline.audit.log_replay.RANGES_MAX", 2)
    group = WrittenGroup(log)
    group.delta(archiving(0, 0), archiving(1, 1, 2), archiving(2, 2, 3))
    audited = Audited(tmp_path)
    assert audited.checks == ["not_followed"]
    assert offsets_of(audited.deliveries, outcome="archiving", letter="unknown") == [0, 1, 2]


STEPS = st.lists(
    st.tuples(st.sampled_from("rrwwfarc"), st.integers(0, 25), st.integers(1, 6)), min_size=1, max_size=25
)


def written(directory: Path, steps: Steps) -> WrittenGroup:
    """A history as a broker writes it: letters begin for Available records, and end for Archiving ones."""
    log = WrittenLog(directory, "orders")
    log.produce(40)
    group = WrittenGroup(log)
    group.delta(StateRange(0, 29, AVAILABLE, 1, Cause.RELEASE, "first"))
    for kind, first, size in steps:
        if kind == "c":
            group.checkpoint()
            continue
        wanted = AVAILABLE if kind in "ra" else ARCHIVING
        change = _CHANGES[kind]
        states = [
            change(max(one.base_offset, first), min(one.last_offset, first + size - 1))
            for one in group.image.ranges
            if one.state is wanted and one.base_offset < first + size and one.last_offset >= first
        ]
        if states:
            group.delta(*states)
    return group


_CHANGES: dict[str, Callable[[int, int], StateRange]] = {
    "r": archiving,
    "a": accepted,
    "w": lettered,
    "f": lambda first, last: lettered(first, last, cause=Cause.LETTER_FAILED),
}


@settings(max_examples=60)
@given(STEPS)
def test_every_record_has_one_outcome_of_its_last_delivery(steps: Steps) -> None:
    with TemporaryDirectory() as directory:
        group = written(Path(directory), steps)
        audited = Audited(Path(directory))
        assert audited.violations == []
        image = group.image
        states = {
            offset: one.state
            for one in image.ranges
            for offset in range(one.base_offset, one.last_offset + 1)
        }
        ended = [row for row in audited.deliveries if row["outcome"] != "available"]
        offsets = offsets_of(ended)
        assert len(offsets) == len(set(offsets)), "no record has two outcomes"
        on_the_way = [offset for offset, state in states.items() if state is ARCHIVING]
        assert offsets_of(ended, outcome="archiving", letter="due") == on_the_way
        assert offsets_of(audited.table(OPEN), state="archiving") == on_the_way
        assert {row["cause"] for row in ended if row["letter"] is not None} <= {"reject"}
        done = [*range(image.start_offset), *(one for one, state in states.items() if is_final(state))]
        assert set(done) <= set(offsets)
        summed = sum(row["recordCount"] for row in audited.table(OUTCOME))
        assert summed == sum(row["recordCount"] for row in audited.deliveries)
        assert len(audited.table(HISTORY)) == 1


def test_a_mixed_pack_is_decoded_as_written(log: WrittenLog, tmp_path: Path) -> None:
    """Deltas of version 1 and 2 alternate; the members of each keep their names."""
    group = WrittenGroup(log)
    for offset in range(0, 20, 2):
        group.delta(accepted(offset, offset, member=f"a{offset % 3}"))
        group.delta(archiving(offset + 1, offset + 1, member=f"r{offset % 3}"))
    members = {row["firstOffset"]: row["member"] for row in Audited(tmp_path).deliveries}
    assert members == {
        offset: f"a{offset % 3}" if offset % 2 == 0 else f"r{(offset - 1) % 3}" for offset in range(20)
    }
