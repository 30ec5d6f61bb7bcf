from pathlib import Path

import pytest

from barnabas.storage.directory.log_directory import LogDirectory
from barnabas.storage.log_config import LogConfig
from tests.cli.log_tool.written_logs import FIRST, LogCommand, batch_positions, spoil, write
from tests.storage.log_building import NOW_MS, TOPIC_ID
from tests.storage.steady_filesystem import SteadyFileSystem


def test_a_log_is_described_with_its_offsets(log_command: LogCommand, log_path: Path) -> None:
    partition, *_ = log_command.rows("describe", log_path.parent)
    told = {
        name: partition[name]
        for name in (
            "topic",
            "log_start_offset",
            "high_watermark",
            "log_end_offset",
            "recovery_point",
            "earliest_share_offset",
            "control_bytes",
            "damage_count",
        )
    }
    assert told == {
        "topic": "orders",
        "log_start_offset": 0,
        "high_watermark": 12,
        "log_end_offset": 14,
        "recovery_point": 14,
        "earliest_share_offset": 8,
        "control_bytes": 1015,
        "damage_count": 0,
    }
    assert partition["leader_epochs"] == [{"leader_epoch": 2, "start_offset": 0}]


def test_segments_are_described_with_their_sizes(log_command: LogCommand, log_path: Path) -> None:
    rows = [row for row in log_command.rows("describe", log_path) if row["type"] == "segment"]
    assert [(row["base_offset"], row["size_bytes"], row["control_bytes"]) for row in rows] == [
        (0, 612, 430),
        (8, 670, 585),
    ]


def test_share_groups_are_described_with_their_records_in_flight(
    log_command: LogCommand, log_path: Path
) -> None:
    (group,) = [row for row in log_command.rows("describe", log_path) if row["type"] == "group"]
    told = {name: group[name] for name in ("group_id", "spso", "speo", "lag", "delivery_complete_count")}
    assert told == {"group_id": "workers", "spso": 7, "speo": 11, "lag": 3, "delivery_complete_count": 0}
    assert group["in_flight"] == [
        {"base_offset": 10, "last_offset": 10, "state": "available", "delivery_count": 1}
    ]
    chain = {
        name: group[name] for name in ("checkpoint_offset", "chain_length", "state_epoch", "incarnation")
    }
    assert chain == {"checkpoint_offset": 8, "chain_length": 3, "state_epoch": 1, "incarnation": 7}


@pytest.mark.parametrize(("log_start_offset", "lag"), [(7, 3), (10, 2), (11, 1), (12, 0)])
async def test_records_below_the_log_start_are_no_lag(
    log_command: LogCommand, log_path: Path, log_start_offset: int, lag: int
) -> None:
    directory = await LogDirectory.open(
        SteadyFileSystem(), str(log_path.parent), node_id=1, wall_ms=lambda: NOW_MS
    )
    log = await directory.log("orders", 0, TOPIC_ID, LogConfig(segment_bytes=800))
    log.delete_records(log_start_offset)
    await directory.close()
    (group,) = [row for row in log_command.rows("describe", log_path) if row["type"] == "group"]
    assert (group["spso"], group["lag"]) == (7, lag)


async def test_batches_without_index_entries_are_read_from_the_log(
    log_command: LogCommand, tmp_path: Path
) -> None:
    log_path = await write(tmp_path / "data", is_closed_in_order=False)
    for name in (".index", ".shareindex", ".timeindex"):
        for path in log_path.glob(f"*{name}"):
            path.unlink()
    partition, *_, group = log_command.rows("describe", log_path)
    assert (partition["high_watermark"], partition["log_end_offset"]) == (12, 14)
    assert (group["spso"], group["lag"]) == (7, 3)


def test_as_text_it_is_a_table(log_command: LogCommand, log_path: Path) -> None:
    _, printed = log_command.run("describe", log_path)
    assert printed == [
        "",
        "orders-0  (topic id AAAAAAAAAAAAAAAAAAAABw)",
        "  log start 0, high watermark 12, log end 14, recovery point 14, earliest share offset 8",
        "  1282 bytes, 1015 of them share state; leader epochs: 2 from 0",
        "  SEGMENT                            BYTES  SHARE STATE  NEWEST RECORD",
        "  orders-0/00000000000000000000.log  612    430          1970-01-01T00:16:40.000Z",
        "  orders-0/00000000000000000008.log  670    585          1970-01-01T00:16:40.000Z",
        "",
        "  GROUP    SPSO  SPEO  LAG  COMPLETE  RANGES  SCO  CHAIN  STATE EPOCH  INCARNATION  BYTES",
        "  workers  7     11    3    0         1       8    3      1            7            1015",
        "    workers: range  offsets 10-10  state available  delivery count 1",
    ]


def test_damage_is_mentioned(log_command: LogCommand, log_path: Path) -> None:
    segment = log_path / f"{FIRST}.log"
    position = batch_positions(segment)[4]
    spoil(segment, lambda content: content.__setitem__(position + 70, 255))
    assert log_command.rows("describe", log_path)[0]["damage_count"] > 0
    assert any("see barnabas log verify" in line for line in log_command.run("describe", log_path)[1])
