import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from barnabas.coordinator.metadata.snapshot import SnapshotId, encode_snapshot
from barnabas.protocol.metadata_records import TopicRecord
from tests.cli.log_tool.written_logs import (
    ACTIVE,
    FIRST,
    LogCommand,
    batch_positions,
    spoil,
    write_groups,
)
from tests.storage.log_building import NOW_MS, TOPIC_ID


def of_type(rows: list[Mapping[str, Any]], *types: str) -> list[Mapping[str, Any]]:
    return [row for row in rows if row["type"] in types]


def test_batches_are_printed_with_their_header_fields(log_command: LogCommand, log_path: Path) -> None:
    rows = of_type(log_command.rows("dump", log_path), "batch")
    assert [(row["base_offset"], row["last_offset"]) for row in rows][:6] == [
        (0, 2),
        (3, 3),
        (4, 4),
        (5, 5),
        (6, 7),
        (8, 8),
    ]
    produced = rows[4]
    assert (produced["producer_id"], produced["base_sequence"], produced["leader_epoch"]) == (9, 0, 2)
    assert (produced["crc_ok"], produced["codec"], produced["control"]) == (True, "none", False)
    assert produced["file"] == f"orders-0/{FIRST}.log"


def test_records_are_printed_on_request(log_command: LogCommand, log_path: Path) -> None:
    rows = of_type(log_command.rows("dump", "--records", log_path), "record")
    assert [row["offset"] for row in rows] == [0, 1, 2, 6, 7, 10, 11]
    first = {name: value for name, value in rows[0].items() if name != "file"}
    assert first == {
        "type": "record",
        "offset": 0,
        "timestamp_ms": NOW_MS,
        "key": None,
        "value": "first",
        "headers": [],
    }


def test_share_state_is_printed_with_its_chain_ranges_causes_and_members(
    log_command: LogCommand, log_path: Path
) -> None:
    rows = of_type(log_command.rows("dump", log_path), "checkpoint", "delta")
    assert [(row["type"], row["offset"], row["checkpoint_epoch"]) for row in rows] == [
        ("checkpoint", 3, 1),
        ("delta", 4, 1),
        ("delta", 5, 1),
        ("checkpoint", 8, 2),
        ("delta", 9, 2),
        ("delta", 12, 2),
        ("delta", 13, 2),
    ]
    acknowledged = rows[2]
    assert (acknowledged["group_id"], acknowledged["back_offset"]) == ("workers", 4)
    assert acknowledged["states"] == [
        {
            "base_offset": 0,
            "last_offset": 0,
            "state": "acknowledged",
            "delivery_count": 1,
            "cause": "accept",
            "member": "member-1",
        }
    ]


def test_a_range_of_offsets_can_be_selected(log_command: LogCommand, log_path: Path) -> None:
    rows = of_type(log_command.rows("dump", "--from-offset", "7", "--to-offset", "9", log_path), "batch")
    assert [row["base_offset"] for row in rows] == [6, 8, 9]


def test_the_state_of_one_group_can_be_selected(log_command: LogCommand, log_path: Path) -> None:
    rows = log_command.rows("dump", "--group", "workers", log_path)
    assert [row["base_offset"] for row in of_type(rows, "batch")] == [3, 4, 5, 8, 9, 12, 13]
    rows = log_command.rows("dump", "--group", "workers", "--from-offset", "9", "--to-offset", "10", log_path)
    assert [row["base_offset"] for row in of_type(rows, "batch")] == [9]


def test_a_group_without_state_is_reported_with_the_groups_that_have_state(
    log_command: LogCommand, log_path: Path
) -> None:
    exit_code, printed = log_command.run("dump", "--group", "worker", log_path)
    assert exit_code == 2
    assert printed[-1] == "barnabas: There is no state of group worker. There is state of workers."


async def test_of_many_groups_those_with_the_nearest_names_are_reported(
    log_command: LogCommand, tmp_path: Path
) -> None:
    groups = [f"workers-{number}" for number in range(12)]
    path = await write_groups(tmp_path / "data", groups)
    exit_code, printed = log_command.run("dump", "--group", "workers-77", path)
    assert exit_code == 2
    named = ", ".join(f"workers-{number}" for number in (7, 0, 1, 2, 3, 4, 5, 6, 8, 9))
    told = f"There is no state of group workers-77. There is state of {named} and 2 others."
    assert printed[-1] == f"barnabas: {told}"


async def test_where_no_group_has_state_the_message_says_so(log_command: LogCommand, tmp_path: Path) -> None:
    path = await write_groups(tmp_path / "data", [])
    exit_code, printed = log_command.run("dump", "--group", "workers", path)
    assert exit_code == 2
    assert printed[-1] == "barnabas: There is no state of group workers, and none of any other share group."


def test_index_entries_are_printed_on_request(log_command: LogCommand, log_path: Path) -> None:
    rows = of_type(log_command.rows("dump", "--indexes", log_path), "entry")
    by_file: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        by_file.setdefault(row["file"], []).append(row)
    positions = batch_positions(log_path / f"{FIRST}.log")
    offsets = by_file[f"orders-0/{FIRST}.index"]
    assert [(row["offset"], row["position"]) for row in offsets] == [
        (last, positions[base]) for base, last in ((3, 3), (4, 4), (5, 5), (6, 7))
    ]
    assert [(row["timestamp_ms"], row["offset"]) for row in by_file[f"orders-0/{FIRST}.timeindex"]] == [
        (NOW_MS, 2)
    ]
    kinds = [(row["base_offset"], row["kind"]) for row in by_file[f"orders-0/{ACTIVE}.shareindex"]]
    assert kinds == [(8, "checkpoint"), (9, "delta"), (12, "delta"), (13, "delta")]


def test_the_files_beside_the_segments_are_printed(log_command: LogCommand, log_path: Path) -> None:
    rows = log_command.rows("dump", log_path)
    told = {
        row["file"].removeprefix("orders-0/"): row for row in rows if row["type"] not in ("file", "batch")
    }
    assert (
        told["leader-epoch-checkpoint"]["leader_epoch"],
        told["leader-epoch-checkpoint"]["start_offset"],
    ) == (2, 0)
    assert told["partition.metadata"]["topic_id"] == "AAAAAAAAAAAAAAAAAAAABw"
    assert (told["share-snapshot"]["group_id"], told["share-snapshot"]["checkpoint_offset"]) == ("workers", 8)
    assert (
        told["00000000000000000014.snapshot"]["producer_id"],
        told["00000000000000000014.snapshot"]["last_offset"],
    ) == (9, 11)


def test_the_checkpoints_of_a_data_directory_are_printed(log_command: LogCommand, log_path: Path) -> None:
    rows = log_command.rows("dump", log_path.parent)
    (told,) = [
        row for row in rows if row["file"] == "recovery-point-offset-checkpoint" and row["type"] == "entry"
    ]
    assert (told["topic"], told["partition"], told["offset"]) == ("orders", 0, 14)


def test_damage_is_printed_in_its_place(log_command: LogCommand, log_path: Path) -> None:
    segment = log_path / f"{FIRST}.log"
    position = batch_positions(segment)[6]
    spoil(segment, lambda content: content.__setitem__(position + 70, 255))
    rows = of_type(log_command.rows("dump", log_path), "batch", "damage")
    assert [row["type"] for row in rows[:6]] == ["batch"] * 4 + ["damage", "batch"]
    assert rows[4]["position"] == position
    assert rows[4]["reason"] == "its checksum does not match its bytes"


def test_as_text_each_row_is_a_line(log_command: LogCommand, log_path: Path) -> None:
    _, printed = log_command.run("dump", "--records", log_path / f"{FIRST}.log")
    assert printed[:4] == [
        "",
        f"orders-0/{FIRST}.log  (segment  size 612)",
        (
            "  batch  offsets 0-2  record count 3  position 0  size 97  codec none  crc ok  leader epoch 2  "
            "max timestamp 1970-01-01T00:16:40.000Z"
        ),
        "    record  offset 0  timestamp 1970-01-01T00:16:40.000Z  value first",
    ]


def test_metadata_snapshots_are_decoded(log_command: LogCommand, log_path: Path) -> None:
    metadata = log_path.parent / "__cluster_metadata-0"
    shutil.copytree(log_path, metadata)
    snapshot_id = SnapshotId(5, 2)
    data = encode_snapshot(snapshot_id, [TopicRecord(name="orders", topic_id=TOPIC_ID)], NOW_MS)
    (metadata / snapshot_id.file_name).write_bytes(data)
    rows = [row for row in log_command.rows("dump", metadata) if row["file"].endswith(snapshot_id.file_name)]
    assert [row.get("record") for row in rows] == [
        None,
        "SnapshotHeaderRecord",
        "TopicRecord",
        "SnapshotFooterRecord",
    ]
