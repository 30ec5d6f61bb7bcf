"""Each test makes one thing wrong, and expects exactly the line that reports it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest

from barnabas.coordinator.metadata.snapshot import SnapshotId, encode_snapshot
from barnabas.protocol.control_record import ShareCheckpoint, ShareDelta
from barnabas.protocol.metadata_records import MetadataRecord, PartitionRecord, RemoveTopicRecord, TopicRecord
from barnabas.protocol.record_batch import HEADER_BYTES
from barnabas.protocol.records import Record, encode_records
from barnabas.storage.directory.log_directory import LogDirectory
from barnabas.storage.format.share_snapshot import ShareSnapshot, encode_share_snapshot
from barnabas.storage.log_config import LogConfig
from tests.cli.log_tool.written_logs import (
    ACTIVE,
    FIRST,
    LogCommand,
    accepted,
    available,
    batch_positions,
    checkpoint,
    delta,
    record,
    spoil,
    write,
)
from tests.storage.log_building import NOW_MS, TOPIC_ID, append
from tests.storage.steady_filesystem import SteadyFileSystem

FIRST_LOG, ACTIVE_LOG = f"{FIRST}.log", f"{ACTIVE}.log"
LAST_BYTE = -1
EPOCHS = "orders-0/leader-epoch-checkpoint"


def problems(log_command: LogCommand, path: Path, *options: str) -> list[str]:
    """The lines of `verify` without the summary and without positions; also checks the exit code."""
    exit_code, printed = log_command.run("verify", *options, path)
    assert exit_code == any(not line.startswith("note: ") for line in printed[:-1])
    return [re.sub(r", position \d+", "", line) for line in printed[:-1]]


def set_byte(position: int, value: int) -> Callable[[bytearray], None]:
    return lambda content: content.__setitem__(position, value)


def test_all_is_well_with_a_log_of_the_broker(log_command: LogCommand, log_path: Path) -> None:
    assert log_command.run("verify", log_path.parent) == (0, ["1 partition, 10 batches: all is well"])


def test_problems_are_printed_as_json_too(log_command: LogCommand, log_path: Path) -> None:
    spoil(log_path / FIRST_LOG, set_byte(HEADER_BYTES, 255))
    finding, summary = log_command.rows("verify", log_path)
    assert finding == {
        "type": "problem",
        "file": f"orders-0/{FIRST_LOG}",
        "position": 0,
        "offset": 0,
        "message": "97 bytes are no good batch: its checksum does not match its bytes; "
        "good again from offset 3 on",
    }
    assert (summary["problem_count"], summary["partition_count"]) == (1, 1)


# Segments.


def test_a_flipped_bit_is_found(log_command: LogCommand, log_path: Path) -> None:
    position = batch_positions(log_path / FIRST_LOG)[6]
    spoil(log_path / FIRST_LOG, set_byte(position + HEADER_BYTES, 255))
    exit_code, printed = log_command.run("verify", log_path)
    assert (exit_code, printed) == (
        1,
        [
            (
                f"orders-0/{FIRST_LOG}, position {position}, offset 6: 85 bytes are no good batch: "
                "its checksum does not match its bytes"
            ),
            "1 partition, 9 batches: 1 problem found",
        ],
    )


def test_a_batch_that_reaches_beyond_its_segment_is_found(log_command: LogCommand, log_path: Path) -> None:
    position = batch_positions(log_path / FIRST_LOG)[6]
    spoil(log_path / FIRST_LOG, set_byte(position + 7, 9))
    (problem,) = problems(log_command, log_path)
    assert problem.endswith("85 bytes are no good batch: its offsets 9 to 10 reach beyond 7")


def test_a_torn_tail_after_the_recovery_point_is_a_note(log_command: LogCommand, tmp_path: Path) -> None:
    log_path = make_open_log(tmp_path)
    spoil(log_path / FIRST_LOG, lambda content: content.extend(b"torn"))
    (note,) = problems(log_command, log_path)
    assert note == (
        f"note: orders-0/{FIRST_LOG}, offset 3: the last 4 bytes are no whole batch "
        "(its header is cut short after 4 bytes); a start truncates them"
    )


def test_a_torn_tail_of_a_log_that_was_closed_is_a_problem(log_command: LogCommand, log_path: Path) -> None:
    spoil(log_path / ACTIVE_LOG, lambda content: content.extend(b"torn"))
    (problem,) = problems(log_command, log_path)
    assert "offset 14: 4 bytes are no good batch" in problem


def test_a_truncated_segment_is_found(log_command: LogCommand, log_path: Path) -> None:
    position = batch_positions(log_path / FIRST_LOG)[6]
    spoil(log_path / FIRST_LOG, lambda content: content.__delitem__(slice(position, None)))
    assert problems(log_command, log_path) == [
        (
            f"orders-0/{FIRST}.index, offset 7: "
            f"the entry for offset 7 points to {position}, after the segment's end"
        ),
        f"orders-0/{ACTIVE_LOG}, offset 8: the offsets 6 to 7 are missing",
    ]


def test_a_missing_segment_is_found(log_command: LogCommand, log_path: Path) -> None:
    middle = log_path / f"{20:020d}.log"
    shutil.copy(log_path / FIRST_LOG, middle)
    middle.write_bytes(b"")
    assert f"orders-0/{middle.name}, offset 20: the offsets 14 to 19 are missing" in problems(
        log_command, log_path
    )


def test_holes_from_compaction_are_accepted(log_command: LogCommand, log_path: Path) -> None:
    (log_path.parent / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 8\n")
    first = encode_records([Record(0, NOW_MS, b"k", b"v"), Record(2, NOW_MS, b"l", b"v")], leader_epoch=2)
    wrong_count = bytearray(first)
    assert len(first) < batch_positions(log_path / FIRST_LOG)[3]
    spoil(log_path / FIRST_LOG, lambda content: content.__setitem__(slice(0, None), wrong_count))
    (log_path / f"{FIRST}.index").unlink()
    (log_path / f"{FIRST}.shareindex").unlink()
    assert not [line for line in problems(log_command, log_path) if "missing" in line or "states" in line]
    (log_path.parent / "cleaner-offset-checkpoint").unlink()
    found = problems(log_command, log_path)
    assert f"orders-0/{FIRST_LOG}, offset 0: it states 2 records, and spans 3 offsets" in found
    assert f"orders-0/{ACTIVE_LOG}, offset 8: the offsets 3 to 7 are missing" in found


def test_records_below_the_first_leader_epoch_are_a_note(log_command: LogCommand, log_path: Path) -> None:
    """They have come back, because the log start was lost."""
    (log_path / "leader-epoch-checkpoint").write_text("0\n1\n2 8\n")
    assert problems(log_command, log_path) == [
        f"note: {EPOCHS}: it has no leader epoch for the offsets 0 to 7; that is harmless"
    ]


def test_no_leader_epochs_at_all_are_found(log_command: LogCommand, log_path: Path) -> None:
    (log_path / "leader-epoch-checkpoint").write_text("0\n0\n")
    assert problems(log_command, log_path) == [
        f"{EPOCHS}: it is empty; the next start reads the leader epochs at the log's end"
    ]


def test_one_wrong_entry_of_a_share_index_is_one_entry_of_the_report(
    log_command: LogCommand, log_path: Path
) -> None:
    spoil(log_path / f"{FIRST}.shareindex", lambda content: content.__setitem__(-1, content[-1] ^ 1))
    found = problems(log_command, log_path)
    assert len(found) <= 3, "the entry, and its checksum"


def test_decreasing_leader_epochs_are_found(log_command: LogCommand, log_path: Path) -> None:
    position = batch_positions(log_path / ACTIVE_LOG)[10]
    spoil(log_path / ACTIVE_LOG, set_byte(position + 15, 1))
    assert problems(log_command, log_path) == [
        f"orders-0/{ACTIVE_LOG}, offset 10: its leader epoch is 1, and 2 was before",
        f"orders-0/{ACTIVE_LOG}, offset 10: its leader epoch is 1, by leader-epoch-checkpoint 2",
    ]


def test_records_that_cannot_be_decoded_are_found_on_request(log_command: LogCommand, log_path: Path) -> None:
    good = encode_records([Record(0, NOW_MS, b"k", b"v"), Record(1, NOW_MS, b"l", b"v")], leader_epoch=2)
    twice = encode_records([Record(0, NOW_MS, b"k", b"v"), Record(0, NOW_MS, b"l", b"v")], leader_epoch=2)
    assert len(twice) == len(good)
    (log_path / FIRST_LOG).write_bytes(twice)
    told = "the offsets of its records aren't ascending"
    assert not any(told in line for line in problems(log_command, log_path / FIRST_LOG))
    assert any(told in line for line in problems(log_command, log_path / FIRST_LOG, "--records"))


# Indexes.


@pytest.mark.parametrize(
    ("suffix", "position", "bit", "message"),
    [
        (".index", 7, 1, "the entry for offset 3 points to 96, where there is no such batch"),
        (".index", 3, 1, "the entry for offset 2 points to 97, where there is no such batch"),
        (".index", 8, 1, "its entries aren't ascending"),
        (".timeindex", 7, 64, "its time is 999936, but a record before it has 1000000"),
        (".shareindex", 15, 1, "the entry for position 97 has group_hash 3433415592 for 3433415593"),
        (".shareindex", 18, 1, "the entry for position 97 has kind 4 for 5"),
        (".shareindex", 19, 1, "the entry for position 97 has tombstone True for False"),
        (".shareindex", 11, 1, "the entry for position 97 has length_bytes 138 for 139"),
    ],
)
def test_a_wrong_index_entry_is_found(
    log_command: LogCommand, log_path: Path, suffix: str, position: int, bit: int, message: str
) -> None:
    spoil(
        log_path / f"{FIRST}{suffix}", lambda content: content.__setitem__(position, content[position] ^ bit)
    )
    line, checksum_line = problems(log_command, log_path)
    assert line.startswith(f"orders-0/{FIRST}{suffix}")
    assert line.endswith(message)
    wrong = f"it has another checksum of {FIRST}{suffix}; the next start rebuilds that file"
    assert checksum_line == f"orders-0/index-checksums: {wrong}"


def test_share_state_missing_in_the_index_is_found(log_command: LogCommand, log_path: Path) -> None:
    (log_path / "index-checksums").unlink()
    spoil(log_path / f"{FIRST}.shareindex", lambda content: content.__delitem__(slice(20, 40)))
    assert problems(log_command, log_path) == [
        f"orders-0/{FIRST}.shareindex, offset 4: there is no entry for the share state at position 236"
    ]


def test_an_index_entry_without_share_state_is_found(log_command: LogCommand, log_path: Path) -> None:
    spoil(log_path / f"{ACTIVE}.shareindex", lambda content: content.extend(content[-20:]))
    (found,) = problems(log_command, log_path)
    assert found.endswith("where there is no share state")


async def test_entries_of_batches_that_are_not_durable_may_be_missing(
    log_command: LogCommand, tmp_path: Path
) -> None:
    log_path = await write(tmp_path / "data", is_closed_in_order=False)
    for path in log_path.glob("*.shareindex"):
        path.unlink()
    assert problems(log_command, log_path) == []


# Share state.


async def history(path: Path, *records: ShareCheckpoint | ShareDelta) -> Path:
    """A log of ten records and these control records from offset 10 on."""
    directory = await LogDirectory.open(SteadyFileSystem(), str(path), node_id=1, wall_ms=lambda: NOW_MS)
    directory.leader_epoch = 2
    log = await directory.log("orders", 0, TOPIC_ID, LogConfig())
    append(log, 10)
    for one in records:
        record(log, one)
    await directory.close()
    return path / "orders-0"


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([checkpoint(), delta(9, available(0, 0))], "it follows 9, and the last record is at 10"),
        (
            [checkpoint(), delta(10, available(0, 0), epoch=2)],
            "its checkpoint epoch is 2, its checkpoint's 1",
        ),
        (
            [checkpoint(), delta(10, available(0, 0), incarnation=8)],
            "its incarnation is 8, that of its checkpoint 7",
        ),
        ([checkpoint(deleted=True), delta(10, available(0, 0))], "it follows the tombstone of its group"),
        ([checkpoint(epoch=2), checkpoint(epoch=2)], "the checkpoint epoch 2 is not above 2, the last one"),
        ([checkpoint(state_epoch=2), checkpoint(epoch=2)], "the state epoch goes back from 2 to 1"),
        ([checkpoint(incarnation=8), checkpoint(epoch=2)], "its incarnation 7 is behind 8"),
        (
            [checkpoint(start_offset=4, end_offset=4), checkpoint(epoch=2, start_offset=3, end_offset=4)],
            "the start offset goes back from 4 to 3",
        ),
        (
            [checkpoint(), delta(10, accepted(2, 4)), delta(11, available(3, 3))],
            "3 was acknowledged, and is no longer",
        ),
        (
            [checkpoint(), delta(10, accepted(2, 4)), checkpoint(epoch=2, end_offset=5)],
            "2 was acknowledged, and is no longer",
        ),
    ],
)
async def test_share_state_that_contradicts_itself_is_found(
    log_command: LogCommand, tmp_path: Path, records: list[ShareCheckpoint | ShareDelta], message: str
) -> None:
    log_path = await history(tmp_path / "data", *records)
    place = f"orders-0/{FIRST_LOG}, offset {9 + len(records)}: group 'workers': "
    assert problems(log_command, log_path) == [place + message]


@pytest.mark.parametrize(
    "records",
    [
        [checkpoint(start_offset=4, end_offset=4), checkpoint(epoch=2, state_epoch=2)],
        [checkpoint(deleted=True), checkpoint(incarnation=8)],
        [checkpoint(epoch=5, deleted=True), checkpoint(epoch=1)],
        [checkpoint(start_offset=4, end_offset=4), checkpoint(epoch=2)],
        [checkpoint(), delta(10, accepted(2, 4)), delta(11, accepted(0, 1)), delta(12, available(5, 5))],
        [checkpoint(), delta(10, accepted(2, 4)), checkpoint(epoch=2, start_offset=6, end_offset=6)],
    ],
)
async def test_unusual_but_valid_share_state_is_accepted(
    log_command: LogCommand, tmp_path: Path, records: list[ShareCheckpoint | ShareDelta]
) -> None:
    assert problems(log_command, await history(tmp_path / "data", *records)) == []


async def test_a_chain_without_a_checkpoint_is_found(log_command: LogCommand, tmp_path: Path) -> None:
    log_path = await history(tmp_path / "data", delta(9, available(0, 0)))
    assert problems(log_command, log_path) == [
        "orders-0: group 'workers': the record at 10 follows no checkpoint"
    ]


@pytest.mark.parametrize(
    ("records", "line"),
    [
        (
            [checkpoint(start_offset=11, end_offset=11)],
            "note: orders-0: group 'workers': its start offset 11",
        ),
        ([checkpoint(), delta(10, accepted(0, 10))], "orders-0: group 'workers': its start offset 11"),
    ],
)
async def test_a_start_offset_beyond_the_high_watermark_is_a_problem_unless_it_was_set(
    log_command: LogCommand, tmp_path: Path, records: list[ShareCheckpoint | ShareDelta], line: str
) -> None:
    log_path = await history(tmp_path / "data", *records)
    assert problems(log_command, log_path) == [f"{line} is beyond the high watermark 10"]


# Files.


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("leader-epoch-checkpoint", b"0\n2\n2 0\n1 5\n", "Its entries do not ascend."),
        ("leader-epoch-checkpoint", b"1\n", "The version is '1', not 0."),
        (
            "partition.metadata",
            b"version: 0",
            "b'version: 0' doesn't name a topic id; the next start writes the topic id again",
        ),
        (f"{14:020d}.snapshot", b"\0\1abcd", "The snapshot is cut short."),
        ("share-snapshot", b"\0\1abcd", "the next start ignores it"),
        (
            "share-snapshot",
            encode_share_snapshot(ShareSnapshot(14, 2, {"workers": 3})),
            "it has the newest checkpoint of group 'workers' at 3, and the log at 8",
        ),
        (
            "share-snapshot",
            encode_share_snapshot(ShareSnapshot(14, 2, {"workers": 8, "others": 3})),
            "it has the newest checkpoint of group 'others' at 3, and the log at no offset",
        ),
        (
            "share-snapshot",
            encode_share_snapshot(ShareSnapshot(20, 2, {"workers": 8})),
            "it goes up to offset 20, and the log to 14",
        ),
        ("index-checksums", b"\0\1abcd", "its bytes don't match its checksum; the next start ignores it"),
        (f"{FIRST}.log.swap", b"", "is left from a crash; the next start removes it"),
    ],
)
def test_a_wrong_file_beside_the_segments_is_found(
    log_command: LogCommand, log_path: Path, name: str, content: bytes, message: str
) -> None:
    (log_path / name).write_bytes(content)
    (line,) = problems(log_command, log_path)
    assert line.removeprefix("note: ").startswith(f"orders-0/{name}: ")
    assert line.endswith(message)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "recovery-point-offset-checkpoint",
            "0\n1\norders 0 15\n",
            "it has orders-0 at offset 15, and the log ends at 14",
        ),
        (
            "log-start-offset-checkpoint",
            "0\n1\norders 0 15\n",
            "it has orders-0 at offset 15, and the log ends at 14",
        ),
        ("replication-offset-checkpoint", "7\n", "The version is '7', not 0."),
        ("replication-offset-checkpoint", "0\n1\nothers 3 1\n", "it names others-3, which is not there"),
        (
            "meta.properties",
            "version=1\ncluster.id=c\ndirectory.id=d\n",
            "the file is damaged: it has no node.id. Restore the file from a backup.",
        ),
    ],
)
def test_a_wrong_file_of_the_data_directory_is_found(
    log_command: LogCommand, log_path: Path, name: str, content: str, message: str
) -> None:
    (log_path.parent / name).write_text(content)
    (line,) = problems(log_command, log_path.parent)
    assert line.removeprefix("note: ").startswith(f"{name}: ")
    assert line.endswith(message)


def metadata_snapshot(path: Path, *records: MetadataRecord, end_offset: int = 5) -> bytes:
    snapshot_id = SnapshotId(end_offset, 2)
    data = encode_snapshot(snapshot_id, records, NOW_MS)
    (path / snapshot_id.file_name).write_bytes(data)
    return data


def partition_record(number: int, topic_id: UUID = TOPIC_ID) -> PartitionRecord:
    return PartitionRecord(
        partition_id=number,
        topic_id=topic_id,
        replicas=(1,),
        isr=(1,),
        removing_replicas=(),
        adding_replicas=(),
        leader=1,
        leader_epoch=0,
        partition_epoch=0,
    )


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([TopicRecord(name="orders", topic_id=TOPIC_ID), partition_record(0)], None),
        (
            [TopicRecord(name="orders", topic_id=TOPIC_ID), partition_record(1)],
            "topic orders has the partitions [1]",
        ),
        ([partition_record(0)], f"it has partitions of the topic {TOPIC_ID}, and not the topic"),
        (
            [
                TopicRecord(name="deleted", topic_id=UUID(int=8)),
                RemoveTopicRecord(topic_id=UUID(int=8)),
                TopicRecord(name="orders", topic_id=TOPIC_ID),
                partition_record(0),
            ],
            None,
        ),
    ],
)
def test_a_metadata_snapshot_that_contradicts_itself_is_found(
    log_command: LogCommand, log_path: Path, records: list[MetadataRecord], message: str | None
) -> None:
    metadata = log_path.parent / "__cluster_metadata-0"
    shutil.copytree(log_path, metadata)
    metadata_snapshot(metadata, *records)
    assert [line.split(": ", 1)[1] for line in problems(log_command, metadata)] == (
        [message] if message else []
    )


def test_a_truncated_metadata_snapshot_is_found(log_command: LogCommand, log_path: Path) -> None:
    metadata = log_path.parent / "__cluster_metadata-0"
    shutil.copytree(log_path, metadata)
    data = metadata_snapshot(metadata)
    (metadata / SnapshotId(5, 2).file_name).write_bytes(data[:-1])
    (line,) = problems(log_command, metadata)
    assert "whole batches up to" in line


def make_open_log(tmp_path: Path) -> Path:
    """A log of one batch in a directory that was not closed."""
    log_path = tmp_path / "data" / "orders-0"
    log_path.mkdir(parents=True)
    records = [Record(number, NOW_MS, None, b"value") for number in range(3)]
    (log_path / FIRST_LOG).write_bytes(encode_records(records, leader_epoch=0))
    return log_path
