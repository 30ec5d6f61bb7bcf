"""Each small file of a data directory, damaged byte by byte: a start repairs it, or refuses with a line.

The segments are intact. So all that a client may ask for is as before, or it is refused: no records are lost,
no deleted ones come back, and no share state is forgotten. What a start has repaired stays repaired.

The lowest bit of each byte changes in an orderly directory. Other seeds change other bits, half of them after
a kill.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Any, NamedTuple

import pytest
from structlog.typing import EventDict

from barnabas.storage.directory.log_directory import LogDirectory
from barnabas.storage.errors import InvalidDirectory, StorageError
from barnabas.storage.format.share_index import group_hash
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log_config import LogConfig
from tests.storage.log_building import (
    NOW_MS,
    TOPIC_ID,
    append,
    append_checkpoint,
    append_deltas,
    offset_for_timestamp,
    small_storage,
    values_read,
)
from tests.storage.memory_filesystem import MemoryFileSystem
from tests.storage.transactions import Producer, committed_read

pytestmark = pytest.mark.seeds(1)
PATH = "/data"
ORDERS = f"{PATH}/orders-0"
CONFIG = LogConfig(segment_bytes=700, index_interval_bytes=100)
LOG_START = 2
OPENINGS_MAX = 3
"""An opening finds all damaged files that it reads; a log goes offline once for a file that is read later."""


async def opened(filesystem: MemoryFileSystem, leader_epoch: int) -> LogDirectory:
    directory = await LogDirectory.open(
        filesystem,
        PATH,
        node_id=1,
        wall_ms=lambda: NOW_MS,
        storage=small_storage(reopen_backoff_ms=0),
        new_uuid=lambda: TOPIC_ID,
    )
    directory.leader_epoch = leader_epoch
    return directory


async def written(*, is_killed: bool = False) -> MemoryFileSystem:
    """The directory of a broker that has ended: a partition with everything, and another one beside it."""
    filesystem = MemoryFileSystem()
    for leader_epoch in range(2):
        directory = await opened(filesystem, leader_epoch)
        log = await directory.log("orders", 0, TOPIC_ID, CONFIG)
        append_checkpoint(log)
        append(log, timestamp_ms=NOW_MS + leader_epoch)
        append_deltas(log)
        producer = Producer(log, 1, leader_epoch)
        producer.send()
        producer.abort()
        await directory.flush(high_watermarks=True)
        append(log)
        append_deltas(log)
        await directory.delete_records([(log, LOG_START)])
        append(await directory.log("bills", 0, TOPIC_ID, CONFIG))
        if is_killed and leader_epoch:
            left = filesystem.copy()
            await directory.close()
            return left
        await directory.close()
    return filesystem


async def observed(log: PartitionLog) -> dict[str, Any]:
    """Everything that clients and the broker ask of a log. Raises StorageError."""
    start, end = log.log_start_offset, log.log_end_offset
    return {
        "offsets": (start, end, log.high_watermark, log.last_stable_offset),
        "values": values_read(log, start),
        "committed": committed_read(log, start),
        "times": [await offset_for_timestamp(log, NOW_MS + number) for number in range(2)],
        "share state": [
            log.share_records.read(found) for found in log.share_records.newest(group_hash("group"))
        ],
        "heads": dict(log.share_records.checkpoint_offsets),
        "producers": log.active_producers(),
        "leader epochs": [log.end_offset_for_epoch(leader_epoch) for leader_epoch in range(3)],
    }


class Outcome(NamedTuple):
    """The content of the logs after a start, or the reason of a refusal; and the lines about it."""

    logs: dict[str, dict[str, Any]]
    refusal: str
    alarms: Sequence[EventDict]


class Machine:
    """A data directory before it is damaged, and the starts of brokers on damaged copies of it."""

    def __init__(self, filesystem: MemoryFileSystem, lines: list[EventDict], seed: int) -> None:
        self.filesystem = filesystem
        self.is_killed = is_killed(seed)
        self._lines = lines
        self._seed = seed
        self._random = Random(seed)

    def files(self, suffix: str) -> list[str]:
        """The files with content whose paths end so."""
        files = self.filesystem.files
        return sorted(path for path, content in files.items() if content and path.endswith(suffix))

    def damaged(self, path: str) -> Iterator[tuple[str, MemoryFileSystem]]:
        """(change, copy) for each byte changed, and for each end cut off that may look whole."""
        size_bytes = len(self.filesystem.files[path])
        for position in range(size_bytes):
            flip = self._random.randrange(1, 256) if self._seed else 0x01
            copy = self.filesystem.copy()
            copy.files[path][position] ^= flip
            yield f"{path}, byte {position} ^ {flip:#x}", copy
        for length in {0, size_bytes // 2, size_bytes - 20, size_bytes - 1}:
            if 0 <= length < size_bytes:
                copy = self.filesystem.copy()
                del copy.files[path][length:]
                yield f"{path}, cut to {length} bytes", copy

    async def start(self, filesystem: MemoryFileSystem, *topics: str) -> Outcome:
        """A start, a look at the logs of the topics, and a clean end. Offline logs are opened again."""
        self._lines.clear()
        logs: dict[str, dict[str, Any]] = {}
        refusal = ""
        try:
            directory = await opened(filesystem, leader_epoch=2)
        except InvalidDirectory as error:
            return Outcome(logs, str(error), [])
        topics = topics or ("orders", "bills")
        for topic in topics:
            for _ in range(OPENINGS_MAX):
                try:
                    logs[topic] = await observed(await directory.log(topic, 0, TOPIC_ID, CONFIG))
                except StorageError as error:
                    refusal = str(error)
                else:
                    break
        await directory.close()
        alarms = [line for line in self._lines if line["log_level"] in ("warning", "error")]
        return Outcome(logs, "" if len(logs) == len(topics) else refusal, alarms)

    def has_lost_records(self, filesystem: MemoryFileSystem) -> bool:
        """Whether the segments are not those of before."""
        return any(filesystem.files.get(path) != self.filesystem.files[path] for path in self.files(".log"))


def is_killed(seed: int) -> bool:
    return seed % 2 == 1


@pytest.fixture
async def machine(seed: int, log_lines: list[EventDict]) -> Machine:
    return Machine(await written(is_killed=is_killed(seed)), log_lines, seed)


async def test_a_damaged_index_is_rebuilt_with_one_line(machine: Machine) -> None:
    expected = await machine.start(machine.filesystem.copy(), "orders")
    assert not expected.alarms
    paths = [path for path in machine.files("index") if path.startswith(ORDERS)]
    assert {path.rpartition(".")[2] for path in paths} == {"index", "timeindex", "shareindex", "txnindex"}
    filesystem = machine.filesystem
    for path in paths:
        for change, filesystem in machine.damaged(path):
            outcome = await machine.start(filesystem, "orders")
            assert outcome.logs == expected.logs, change
            assert len(outcome.alarms) == 1 and path.rpartition(".")[0] in str(outcome.alarms), change
        again = await machine.start(filesystem, "orders")
        assert (again.logs, again.alarms) == (expected.logs, []), "it stays repaired"


async def test_an_opening_finds_each_damaged_index_of_a_log_that_is_read_as_a_whole(
    machine: Machine, log_lines: list[EventDict]
) -> None:
    """Such as the metadata: a start does not open it a second time."""
    for path in [path for path in machine.files("index") if path.startswith(ORDERS)]:
        filesystem = machine.filesystem.copy()
        filesystem.files[path][-1] ^= 1
        directory = await opened(filesystem, leader_epoch=2)
        log_lines.clear()
        log = await directory.log("orders", 0, TOPIC_ID, replace(CONFIG, checks_indexes=True))
        assert path.rpartition(".")[0] in str(log_lines), path
        await observed(log)
        await directory.close()


async def test_an_index_of_unknown_origin_that_contradicts_the_log_is_rebuilt(machine: Machine) -> None:
    """Without checksums, as from Apache Kafka or an earlier version. The log itself is not blamed."""
    del machine.filesystem.files[f"{ORDERS}/index-checksums"]
    expected = await machine.start(machine.filesystem.copy(), "orders")
    for path in machine.files(".shareindex"):
        for change, filesystem in machine.damaged(path):
            outcome = await machine.start(filesystem, "orders")
            assert not outcome.refusal, change
            for name in ("offsets", "values", "committed", "times", "producers"):
                assert outcome.logs["orders"][name] == expected.logs["orders"][name], change
            assert "a batch is damaged" not in str(outcome.alarms), change


async def test_damaged_hints_are_replaced_with_one_line(machine: Machine) -> None:
    expected = await machine.start(machine.filesystem.copy(), "orders")
    filesystem = machine.filesystem
    for path in (f"{ORDERS}/index-checksums", f"{ORDERS}/share-snapshot"):
        for change, filesystem in machine.damaged(path):
            outcome = await machine.start(filesystem, "orders")
            assert (outcome.logs, len(outcome.alarms)) == (expected.logs, 1), change
        again = await machine.start(filesystem, "orders")
        assert (again.logs, again.alarms) == (expected.logs, [])


async def test_producers_are_read_from_the_log_without_good_snapshots(machine: Machine) -> None:
    expected = await machine.start(machine.filesystem.copy(), "orders")
    older, newer = machine.files(".snapshot")
    for change, filesystem in machine.damaged(older):
        assert (await machine.start(filesystem, "orders")).logs == expected.logs, change
    for change, filesystem in machine.damaged(newer):
        filesystem.files[older].clear()
        outcome = await machine.start(filesystem, "orders")
        assert (outcome.logs, len(outcome.alarms)) == (expected.logs, 1), change


async def test_no_client_is_told_of_a_truncation_by_damaged_leader_epochs(machine: Machine) -> None:
    expected = (await machine.start(machine.filesystem.copy(), "orders")).logs["orders"]
    ends = expected.pop("leader epochs")
    path = f"{ORDERS}/leader-epoch-checkpoint"
    for change, filesystem in machine.damaged(path):
        outcome = await machine.start(filesystem, "orders")
        found = outcome.logs["orders"].pop("leader epochs")
        assert outcome.logs["orders"] == expected, change
        assert found == ends or path in str(outcome.alarms), change
        assert all(end >= known for (_, end), (_, known) in zip(found, ends, strict=True)), change


async def test_a_changed_topic_id_is_refused_or_written_again(machine: Machine) -> None:
    expected = await machine.start(machine.filesystem.copy())
    path = f"{ORDERS}/partition.metadata"
    for change, filesystem in machine.damaged(path):
        outcome = await machine.start(filesystem)
        if outcome.refusal:
            assert outcome.logs == {"bills": expected.logs["bills"]}, change
            assert f"{path} names the topic id" in outcome.refusal and "restore-topic-id" in outcome.refusal
        else:
            assert outcome.logs == expected.logs, change
            assert outcome.alarms or filesystem.files[path] != machine.filesystem.files[path], change
        assert not machine.has_lost_records(filesystem), change


async def test_damaged_files_of_the_directory_change_no_log(machine: Machine) -> None:
    expected = await machine.start(machine.filesystem.copy())
    paths = [path for path in machine.files("") if path.count("/") == 2]
    assert len(paths) == 6 - machine.is_killed
    for path in paths:
        for change, filesystem in machine.damaged(path):
            outcome = await machine.start(filesystem)
            if outcome.refusal:
                assert f"{path} is damaged" in outcome.refusal and "backup" in outcome.refusal, change
            else:
                assert outcome.logs == expected.logs, change
            assert not machine.has_lost_records(filesystem), change
