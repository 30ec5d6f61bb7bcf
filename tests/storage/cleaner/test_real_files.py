"""Cleaning on the operating system's files, in threads, while the log is written and read."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log_config import LogConfig
from tests.storage.cleaner.dirty_logs import (
    COMPACTED,
    SMALL,
    append_batch,
    everything,
    kept_of,
    keyed,
    latest_by_key,
    records_read,
    roll,
)
from tests.storage.log_building import (
    NOW_MS,
    append,
    append_checkpoint,
    append_deltas,
    open_log,
    small_storage,
)
from tests.storage.steady_filesystem import SteadyFileSystem


async def open_real(path: Path, config: LogConfig, **options: Any) -> PartitionLog:
    return await open_log(SteadyFileSystem(), config=config, directory=f"{path}/orders-0", **options)


def cleaned_files(log: PartitionLog) -> list[str]:
    """The files of a cleaning that is under way."""
    names = SteadyFileSystem().list_directory(log.directory)
    return [name for name in names if name.endswith(".cleaned")]


async def test_a_log_is_written_and_read_while_it_is_cleaned(tmp_path: Path) -> None:
    storage = small_storage(cleaner_slice_bytes=500, open_files_max=2)
    log = await open_real(tmp_path, SMALL, storage=storage)
    for _ in range(10):
        append(log, 3)
        append_checkpoint(log)
        await append_deltas(log, 20)
        await roll(log)
    await append_checkpoint(log)
    values = records_read(log)
    plan = everything(await log.plan_cleaning(0, NOW_MS))
    cleaning = asyncio.create_task(log.clean(plan, NOW_MS))
    rounds = 0
    while not cleaning.done():
        await append(log)
        values.append(records_read(log, log.high_watermark - 1)[0])
        if rounds % 10 == 0:
            assert records_read(log) == values
        rounds += 1
        await asyncio.sleep(0.001)
    cleaned = await cleaning
    assert cleaned is not None
    assert cleaned.written_bytes < cleaned.read_bytes / 2
    assert rounds > 0
    before = kept_of(log)
    assert records_read(log) == values
    await log.close()
    again = await open_real(tmp_path, SMALL)
    assert kept_of(again) == before
    await again.close()


async def test_a_compacted_log_opens_again_from_its_files(tmp_path: Path) -> None:
    log = await open_real(tmp_path, COMPACTED)
    for number in range(100):
        await append_batch(log, keyed(b"key %d" % (number % 7), b"%d" % number))
    await roll(log)
    before = records_read(log)
    assert await log.clean(everything(await log.plan_cleaning(0, NOW_MS)), NOW_MS) is not None
    assert latest_by_key(records_read(log)) == latest_by_key(before)
    assert len(records_read(log)) == 7
    left = records_read(log)
    await log.close()
    for recovery_point in (0, 50, 100):
        again = await open_real(
            tmp_path, replace(COMPACTED, index_interval_bytes=1), recovery_point=recovery_point
        )
        assert records_read(again) == left
        await again.close()


async def test_a_log_that_is_deleted_while_it_is_cleaned_leaves_nothing(tmp_path: Path) -> None:
    storage = small_storage(cleaner_slice_bytes=500, cleaner_io_bytes_per_second=1.0)
    log = await open_real(tmp_path, SMALL, storage=storage)
    append_checkpoint(log)
    await append_deltas(log, 20)
    await roll(log)
    await append_checkpoint(log)
    plan = everything(await log.plan_cleaning(0, NOW_MS))
    cleaning = asyncio.create_task(log.clean(plan, NOW_MS))
    while not cleaned_files(log):  # noqa: ASYNC110  only the directory shows it
        await asyncio.sleep(0.001)
    await log.close(clean=False)
    assert await cleaning is None
    assert not cleaned_files(log)
