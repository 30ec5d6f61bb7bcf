"""The output of `verify` and `dump` for transaction indexes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.storage.directory.log_directory import LogDirectory
from barnabas.storage.log_config import LogConfig
from tests.cli.log_tool.test_verify import problems, set_byte
from tests.cli.log_tool.written_logs import FIRST, LogCommand, spoil
from tests.storage.log_building import NOW_MS, TOPIC_ID
from tests.storage.steady_filesystem import SteadyFileSystem
from tests.storage.transactions import Producer

NO_ENTRY = "there is no entry for the transaction of producer 1000 aborted there"


async def write_aborted(path: Path) -> Path:
    """A data directory with a log of two aborted transactions, and committed data between them."""
    directory = await LogDirectory.open(SteadyFileSystem(), str(path), node_id=1, wall_ms=lambda: NOW_MS)
    log = await directory.log("orders", 0, TOPIC_ID, LogConfig())
    producer = Producer(log, 1000)
    for commit in (False, True, False):
        producer.send(2)
        producer.end(commit=commit)
    await directory.close()
    return path / "orders-0"


async def test_all_is_well_with_transactions(log_command: LogCommand, tmp_path: Path) -> None:
    assert problems(log_command, await write_aborted(tmp_path)) == []


def without_an_entry(content: bytearray) -> None:
    del content[:34]


def with_half_an_entry(content: bytearray) -> None:
    content.extend(b"\x00\x01")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (without_an_entry, f", offset 2: {NO_ENTRY}"),
        (set_byte(9, 7), ", offset 2: its entry names the producer 775, the marker 1000"),
        (set_byte(17, 1), ", offset 2: its entry begins at 1, the transaction at 0"),
        (set_byte(1, 3), ": its version is unknown"),
        (with_half_an_entry, ": its 70 bytes are not entries of 34 bytes"),
    ],
    ids=["missing", "producer", "first offset", "version", "size"],
)
async def test_a_transaction_index_that_contradicts_the_log_is_found(
    log_command: LogCommand, tmp_path: Path, change: Callable[[bytearray], None], told: str
) -> None:
    log_path = await write_aborted(tmp_path)
    (log_path / "index-checksums").unlink()
    spoil(log_path / f"{FIRST}.txnindex", change)
    assert problems(log_command, log_path) == [f"orders-0/{FIRST}.txnindex{told}"]


async def test_an_entry_for_a_missing_marker_is_found(log_command: LogCommand, tmp_path: Path) -> None:
    log_path = await write_aborted(tmp_path)
    (log_path / "index-checksums").unlink()
    spoil(log_path / f"{FIRST}.txnindex", set_byte(25, 3))
    assert problems(log_command, log_path) == [
        f"orders-0/{FIRST}.txnindex, offset 2: {NO_ENTRY}",
        f"orders-0/{FIRST}.txnindex, offset 3: its entry names a marker that isn't there",
    ]


async def test_transactions_are_dumped_with_their_markers_and_entries(
    log_command: LogCommand, tmp_path: Path
) -> None:
    rows = log_command.rows("dump", "--indexes", await write_aborted(tmp_path))
    markers = [(row["type"], row["offset"]) for row in rows if row["type"] in ("abort", "commit")]
    assert markers == [("abort", 2), ("commit", 5), ("abort", 8)]
    entries = [row for row in rows if row["type"] == "entry" and row["file"].endswith(".txnindex")]
    assert [(row["first_offset"], row["last_offset"], row["last_stable_offset"]) for row in entries] == [
        (0, 2, 3),
        (6, 8, 9),
    ]
