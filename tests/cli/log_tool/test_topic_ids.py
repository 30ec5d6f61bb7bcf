"""The topic id in a partition's directory: compared with the metadata, and restored from it."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from barnabas.coordinator.metadata.snapshot import SnapshotId, encode_snapshot
from barnabas.coordinator.metadata.topic_names import METADATA_TOPIC, METADATA_TOPIC_ID
from barnabas.protocol.metadata_records import (
    MetadataRecord,
    RemoveTopicRecord,
    TopicRecord,
    encode_metadata_record,
)
from barnabas.storage.directory.log_directory import LogDirectory
from barnabas.storage.format.partition_metadata import encode_id, encode_partition_metadata
from barnabas.storage.log_config import LogConfig
from tests.cli.log_tool.test_verify import partition_record
from tests.cli.log_tool.written_logs import FIRST, LogCommand, spoil, write
from tests.storage.log_building import NOW_MS, TOPIC_ID
from tests.storage.steady_filesystem import SteadyFileSystem

OTHER_ID = UUID(int=8)
FILE = "orders-0/partition.metadata"


async def write_metadata(
    path: Path, *records: MetadataRecord, in_snapshot: tuple[MetadataRecord, ...] = ()
) -> None:
    """Adds a metadata log to a data directory, a batch for each record, and a snapshot before it."""
    directory = await LogDirectory.open(SteadyFileSystem(), str(path), node_id=1, wall_ms=lambda: NOW_MS)
    log = await directory.log(METADATA_TOPIC, 0, METADATA_TOPIC_ID, LogConfig())
    for record in (*in_snapshot, *records):
        log.append_records([(None, encode_metadata_record(record))], NOW_MS)
    snapshot_id = SnapshotId(len(in_snapshot), 0)
    if in_snapshot:
        snapshot = encode_snapshot(snapshot_id, in_snapshot, NOW_MS)
        await directory.filesystem.replace_whole(f"{log.directory}/{snapshot_id.file_name}", snapshot)
    await directory.close()


@pytest.fixture
async def data(tmp_path: Path) -> Path:
    """A data directory whose metadata knows the topic `orders`, which was made a second time."""
    log_path = await write(tmp_path / "data")
    await write_metadata(
        log_path.parent,
        RemoveTopicRecord(topic_id=OTHER_ID),
        TopicRecord(name="orders", topic_id=TOPIC_ID),
        in_snapshot=(TopicRecord(name="orders", topic_id=OTHER_ID), partition_record(0, OTHER_ID)),
    )
    return log_path.parent


@pytest.mark.parametrize("is_whole", [True, False], ids=["data directory", "partition"])
def test_verify_compares_the_id_with_the_metadata(
    log_command: LogCommand, data: Path, is_whole: bool
) -> None:
    path = data if is_whole else data / "orders-0"
    assert log_command.run("verify", path)[0] == 0
    (data / FILE).write_bytes(encode_partition_metadata(OTHER_ID))
    exit_code, (line, _) = log_command.run("verify", path)
    assert exit_code == 1
    assert line == (
        f"{FILE}: it names the topic id {encode_id(OTHER_ID)}, and the metadata has {encode_id(TOPIC_ID)} "
        f"for orders; with the broker stopped, `barnabas log restore-topic-id {data / 'orders-0'}` "
        "writes the latter"
    )


def test_a_changed_id_is_restored_from_the_metadata(log_command: LogCommand, data: Path) -> None:
    content = (data / FILE).read_bytes()
    (data / FILE).write_bytes(encode_partition_metadata(OTHER_ID))
    assert log_command.run("restore-topic-id", data / "orders-0") == (
        0,
        [f"{FILE}: the topic id is {encode_id(TOPIC_ID)} again; it was {encode_id(OTHER_ID)}"],
    )
    assert (data / FILE).read_bytes() == content
    assert log_command.run("verify", data)[0] == 0
    assert log_command.run("restore-topic-id", data / "orders-0") == (
        0,
        [f"{FILE}: the topic id {encode_id(TOPIC_ID)} is that of the metadata; nothing was changed"],
    )


def test_an_unreadable_id_is_restored_too(log_command: LogCommand, data: Path) -> None:
    (data / FILE).write_bytes(b"")
    (row,) = log_command.rows("restore-topic-id", data / "orders-0")
    assert row == {
        "type": "topic_id",
        "file": FILE,
        "topic_id": encode_id(TOPIC_ID),
        "earlier_topic_id": None,
    }


def test_the_id_of_the_metadata_itself_is_known_without_it(log_command: LogCommand, data: Path) -> None:
    metadata = data / "__cluster_metadata-0"
    content = (metadata / "partition.metadata").read_bytes()
    (metadata / "partition.metadata").write_bytes(encode_partition_metadata(OTHER_ID))
    assert log_command.run("verify", data)[0] == 1
    assert log_command.run("restore-topic-id", metadata)[0] == 0
    assert (metadata / "partition.metadata").read_bytes() == content
    assert log_command.run("verify", data)[0] == 0


async def test_no_id_is_restored_that_the_metadata_does_not_have(log_command: LogCommand, data: Path) -> None:
    (data / "orders-0").rename(data / "payments-0")
    content = (data / "payments-0" / "partition.metadata").read_bytes()
    exit_code, (line,) = log_command.run("restore-topic-id", data / "payments-0")
    assert (exit_code, line) == (2, f"barnabas: The metadata of {data} has no topic payments.")
    assert (data / "payments-0" / "partition.metadata").read_bytes() == content


def test_no_id_is_restored_from_damaged_metadata(log_command: LogCommand, data: Path) -> None:
    spoil(data / "__cluster_metadata-0" / f"{FIRST}.log", lambda content: content.__setitem__(200, 0))
    (data / FILE).write_bytes(encode_partition_metadata(OTHER_ID))
    exit_code, (line,) = log_command.run("restore-topic-id", data / "orders-0")
    assert exit_code == 2
    assert f"The metadata of {data} cannot be read: " in line


def test_only_the_directory_of_one_partition_is_repaired(log_command: LogCommand, data: Path) -> None:
    assert log_command.run("restore-topic-id", data) == (
        2,
        ["barnabas: Name the directory of one partition."],
    )


async def test_a_directory_in_use_is_not_changed(log_command: LogCommand, data: Path) -> None:
    directory = await LogDirectory.open(SteadyFileSystem(), str(data), node_id=1, wall_ms=lambda: NOW_MS)
    (data / FILE).write_bytes(encode_partition_metadata(OTHER_ID))
    exit_code, (line,) = log_command.run("restore-topic-id", data / "orders-0")
    assert (exit_code, "is used by a running broker" in line) == (2, True)
    await directory.close()
