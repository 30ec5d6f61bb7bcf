"""A control record that cannot be read stops its own group only, and nothing else of the partition."""

from collections.abc import Callable

import pytest
from structlog.typing import EventDict

from barnabas.protocol.control_record import VALUE_VERSION, build_control_batch
from barnabas.protocol.records import iterate_records
from barnabas.protocol.varint import NewerVersion
from barnabas.share.log_store.partition_state_store import PartitionStateStore
from barnabas.storage.errors import ShareStateLost
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.segments.control_batch import ControlBatch
from tests.storage.log_building import (
    DIRECTORY,
    NOW_MS,
    append,
    append_checkpoint,
    append_control,
    checkpoint_batch,
    delta_batch,
    of_newer_version,
    open_log,
    values_read,
)
from tests.storage.memory_filesystem import MemoryFileSystem

Batch = Callable[[int, int, str], ControlBatch]
LOG_PATH = f"{DIRECTORY}/{0:020d}.log"


def rewritten(control: ControlBatch, change: Callable[[bytes], bytes]) -> ControlBatch:
    """The same record with another value, and a correct checksum."""
    record = next(iterate_records(control.data))
    assert record.key is not None
    assert record.value is not None
    data = build_control_batch(record.offset, 0, NOW_MS, record.key, change(record.value))
    return control._replace(data=data)


def without_end(value: bytes) -> bytes:
    """The group can be read, but not the fields behind it."""
    return value[:-3]


def without_group(value: bytes) -> bytes:
    return value.replace(b"stopped", b"stop\xff\xff\xff")


def cut_short(value: bytes) -> bytes:
    return value[:7]


async def log_with(batch: Batch, change: Callable[[bytes], bytes], *, flushed: bool) -> MemoryFileSystem:
    """The files of a killed process: records, and the state of two groups. The second group has changes
    behind the unreadable record.
    """
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem)
    append(log, 2)
    append_checkpoint(log, "stopped")
    append_control(log, lambda offset, epoch: rewritten(batch(offset, epoch, "stopped"), change), NOW_MS)
    append_checkpoint(log, "served")
    append(log, 2)
    if flushed:
        await log.flush()
    return filesystem.copy()


def load(log: PartitionLog, group_id: str) -> object:
    return PartitionStateStore(log, lambda: NOW_MS, 10).load(group_id, 1)


@pytest.mark.parametrize("flushed", [True, False])
@pytest.mark.parametrize("change", [without_end, without_group, cut_short])
@pytest.mark.parametrize("batch", [checkpoint_batch, delta_batch])
async def test_the_partition_serves_and_the_group_alone_stops(
    batch: Batch, change: Callable[[bytes], bytes], flushed: bool, log_lines: list[EventDict]
) -> None:
    filesystem = await log_with(batch, change, flushed=flushed)
    log = await open_log(filesystem, recovery_point=7 if flushed else 0)
    assert append(log).error is None
    assert [offset for offset, _ in values_read(log)] == [0, 1, 5, 6, 7]
    assert load(log, "served") is not None
    log_lines.clear()
    for _ in range(2):
        with pytest.raises(ShareStateLost):
            load(log, "stopped")
    (line,) = log_lines
    assert line["segment"] == LOG_PATH
    assert "reset or delete the group's offsets" in line["effect"]


async def test_an_unreadable_checkpoint_keeps_records_that_may_be_its_groups() -> None:
    log = await open_log(await log_with(checkpoint_batch, without_group, flushed=True), recovery_point=7)
    assert log.share_records.may_have_state("anybody's")


async def test_a_new_checkpoint_ends_it() -> None:
    log = await open_log(await log_with(delta_batch, cut_short, flushed=False))
    append_checkpoint(log, "stopped")
    assert load(log, "stopped") is not None


async def test_state_of_a_newer_broker_is_refused_with_both_versions_and_the_file() -> None:
    filesystem = await log_with(checkpoint_batch, of_newer_version, flushed=False)
    with pytest.raises(NewerVersion) as raised:
        await open_log(filesystem)
    assert str(raised.value) == (
        f"{LOG_PATH}, offset 3: The share state has version {VALUE_VERSION + 1}, "
        f"and this broker understands version {VALUE_VERSION}: start a newer one."
    )
