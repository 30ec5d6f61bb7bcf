"""Where a group begins that has never read the partition."""

import pytest

from barnabas.broker.config.share_settings import AutoOffsetReset
from barnabas.broker.leader.start_offset import resolve_start_offset
from tests.storage.log_building import append, append_deltas, open_log
from tests.storage.memory_filesystem import MemoryFileSystem

NOW_MS = 1_000_000


@pytest.mark.parametrize(
    ("reset", "offset"),
    [
        (AutoOffsetReset("earliest"), 1),
        (AutoOffsetReset("latest"), 4),
        (AutoOffsetReset("by_duration", 400), 2),
        (AutoOffsetReset("by_duration", 300), 2),
        (AutoOffsetReset("by_duration", 299), 3),
        (AutoOffsetReset("by_duration", 50), None),
    ],
)
async def test_by_policy(reset: AutoOffsetReset, offset: int | None) -> None:
    log = await open_log(MemoryFileSystem())
    for age_ms in (1000, 500, 300, 100):
        append(log, timestamp_ms=NOW_MS - age_ms)
    append_deltas(log, 3)
    log.delete_records(1)
    assert resolve_start_offset(log, reset, NOW_MS) == offset


async def test_in_an_empty_log() -> None:
    log = await open_log(MemoryFileSystem())
    assert resolve_start_offset(log, AutoOffsetReset("latest"), NOW_MS) == 0
    assert resolve_start_offset(log, AutoOffsetReset("earliest"), NOW_MS) == 0
    assert resolve_start_offset(log, AutoOffsetReset("by_duration", 10**9), NOW_MS) is None
