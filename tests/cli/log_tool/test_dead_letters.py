"""Records on their way to dead letters: control records of version 2 in each command."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.protocol.control_record import ShareDelta
from barnabas.protocol.delivery_state import Cause, LetterPlace, RecordState, StateRange, encode_condition
from barnabas.protocol.record_batch import build_batch
from barnabas.protocol.share_state_records import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    StateBatchValue,
    encode_share_state_record,
)
from barnabas.storage.directory.log_directory import LogDirectory
from barnabas.storage.format.partition_metadata import encode_id
from barnabas.storage.log_config import LogConfig
from tests.cli.log_tool.written_logs import GROUP, INCARNATION, LogCommand, accepted, checkpoint, record
from tests.storage.log_building import NOW_MS, TOPIC_ID, append
from tests.storage.steady_filesystem import SteadyFileSystem

PLACE = LetterPlace(Cause.REJECT, TOPIC_ID, 2, 70)
NO_PLACE = LetterPlace(Cause.DELIVERY_LIMIT)
PLACE_FIELDS = {
    "letter_reason": "reject",
    "letter_topic_id": encode_id(TOPIC_ID),
    "letter_partition": 2,
    "letter_from_offset": 70,
}


def archiving(base_offset: int, last_offset: int, place: LetterPlace) -> StateRange:
    return StateRange(base_offset, last_offset, RecordState.ARCHIVING, 1, place.reason, "member-1", place)


def archived(base_offset: int, last_offset: int, cause: Cause = Cause.DEAD_LETTER) -> StateRange:
    return StateRange(base_offset, last_offset, RecordState.ARCHIVED, 1, cause)


async def written(path: Path, *deltas: tuple[StateRange, ...]) -> Path:
    """A log of 6 records, a checkpoint at 6, and these deltas; returns its directory."""
    directory = await LogDirectory.open(SteadyFileSystem(), str(path), node_id=1, wall_ms=lambda: NOW_MS)
    log = await directory.log("orders", 0, TOPIC_ID, LogConfig())
    append(log, 6)
    record(log, checkpoint())
    for back_offset, states in enumerate(deltas, start=6):
        record(log, ShareDelta(GROUP, INCARNATION, 1, NOW_MS, back_offset, states))
    append(log, 1)
    await directory.close()
    return path / "orders-0"


async def test_dump_prints_the_place_and_the_reason_of_a_letter(
    log_command: LogCommand, tmp_path: Path
) -> None:
    path = await written(tmp_path, (archiving(0, 1, PLACE), archiving(2, 2, NO_PLACE)), (archived(0, 1),))
    deltas = [row for row in log_command.rows("dump", path) if row["type"] == "delta"]
    (placed, unplaced), (ended,) = (row["states"] for row in deltas)
    assert placed == {
        "base_offset": 0,
        "last_offset": 1,
        "state": "archiving",
        "delivery_count": 1,
        "cause": "reject",
        "member": "member-1",
        **PLACE_FIELDS,
    }
    assert (unplaced["letter_reason"], unplaced["letter_topic_id"]) == ("delivery limit", None)
    assert (ended["state"], ended["cause"], "letter_reason" in ended) == ("archived", "dead letter", False)
    _, printed = log_command.run("dump", path)
    assert [line.strip() for line in printed if line.strip().startswith("range")] == [
        (
            "range  offsets 0-1  state archiving  delivery count 1  cause reject  member member-1  "
            f"letter reason reject  letter topic id {encode_id(TOPIC_ID)}  letter partition 2  "
            "letter from offset 70"
        ),
        (
            "range  offsets 2-2  state archiving  delivery count 1  cause delivery limit  member member-1  "
            "letter reason delivery limit"
        ),
        "range  offsets 0-1  state archived  delivery count 1  cause dead letter",
    ]


async def test_describe_lists_the_records_that_wait_for_letters(
    log_command: LogCommand, tmp_path: Path
) -> None:
    path = await written(tmp_path, (archiving(0, 1, PLACE), accepted(2, 4)))
    (group,) = [row for row in log_command.rows("describe", path) if row["type"] == "group"]
    assert (group["spso"], group["lag"], group["delivery_complete_count"]) == (0, 4, 3)
    waiting, _ = group["in_flight"]
    assert waiting == {
        "base_offset": 0,
        "last_offset": 1,
        "state": "archiving",
        "delivery_count": 1,
        **PLACE_FIELDS,
    }


@pytest.mark.parametrize("cause", [Cause.DEAD_LETTER, Cause.LETTER_FAILED])
async def test_verify_accepts_the_end_of_a_letter(
    log_command: LogCommand, tmp_path: Path, cause: Cause
) -> None:
    elsewhere = archiving(1, 1, PLACE._replace(partition=3))
    path = await written(
        tmp_path, (archiving(0, 2, PLACE),), (elsewhere,), (archived(1, 2, cause),), (archived(0, 0, cause),)
    )
    assert log_command.run("verify", path)[0] == 0


async def test_verify_finds_a_record_that_left_its_way_to_a_letter(
    log_command: LogCommand, tmp_path: Path
) -> None:
    path = await written(tmp_path, (archiving(0, 2, PLACE),), (accepted(1, 1),))
    exit_code, printed = log_command.run("verify", path)
    assert exit_code == 1
    assert printed[0].endswith("1 was archiving, and is no longer")


async def test_the_letters_in_a_state_topic_are_decoded(log_command: LogCommand, tmp_path: Path) -> None:
    letter = StateBatchValue(
        first_offset=0, last_offset=1, delivery_state=3, delivery_count=1, condition=encode_condition(PLACE)
    )
    of_kafka = StateBatchValue(first_offset=2, last_offset=2, delivery_state=3, delivery_count=1)
    value = ShareSnapshotValue(
        snapshot_epoch=0,
        state_epoch=1,
        leader_epoch=1,
        start_offset=0,
        create_timestamp_ms=0,
        write_timestamp_ms=0,
        state_batches=(letter, of_kafka),
    )
    key = ShareSnapshotKey(group_id=GROUP, topic_id=TOPIC_ID, partition=0)
    folder = tmp_path / "__share_group_state-0"
    folder.mkdir()
    records = [encode_share_state_record((key, value))]
    (folder / f"{0:020}.log").write_bytes(build_batch(0, records, leader_epoch=1, timestamp_ms=NOW_MS))
    (row,) = [row for row in log_command.rows("dump", "--records", folder) if row["type"] == "record"]
    assert row["value"]["state_batches"] == [
        {"first_offset": 0, "last_offset": 1, "delivery_state": 3, "delivery_count": 1, **PLACE_FIELDS},
        {"first_offset": 2, "last_offset": 2, "delivery_state": 3, "delivery_count": 1},
    ]
