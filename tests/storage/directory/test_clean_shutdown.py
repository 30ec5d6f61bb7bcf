"""The mark of a clean end: it is known whether an earlier loss still matters."""

from __future__ import annotations

import pytest
from structlog.typing import EventDict

from barnabas.storage.directory.clean_shutdown import CLEAN_SHUTDOWN_FILE
from tests.storage.directory.test_log_directory import PATH, open_directory
from tests.storage.memory_filesystem import MemoryFileSystem


@pytest.mark.parametrize("after_loss", [False, True])
async def test_a_loss_that_still_matters_is_known_after_a_clean_close(after_loss: bool) -> None:
    filesystem = MemoryFileSystem()
    directory = await open_directory(filesystem)
    assert not directory.was_closed_cleanly
    await directory.close(after_loss=after_loss)
    directory = await open_directory(filesystem)
    assert directory.was_closed_cleanly is not after_loss
    await directory.close()


@pytest.mark.parametrize("after_loss", [False, True])
async def test_a_damaged_mark_is_no_mark_of_a_clean_end(after_loss: bool, log_lines: list[EventDict]) -> None:
    path = f"{PATH}/{CLEAN_SHUTDOWN_FILE}"
    filesystem = MemoryFileSystem()
    await (await open_directory(filesystem)).close(after_loss=after_loss)
    content = bytes(filesystem.files[path])
    for position in range(len(content)):
        for damaged in (content[:position], content[:position] + b"*" + content[position + 1 :]):
            filesystem.files[path] = bytearray(damaged)
            log_lines.clear()
            directory = await open_directory(filesystem)
            assert not directory.was_closed_cleanly, damaged
            assert [line["path"] for line in log_lines] == [path], damaged
            await directory.close(clean=False)


async def test_the_mark_of_apache_kafka_is_known() -> None:
    filesystem = MemoryFileSystem()
    await (await open_directory(filesystem)).close()
    filesystem.files[f"{PATH}/{CLEAN_SHUTDOWN_FILE}"] = bytearray(b'{"version":0,"brokerEpoch":17}')
    assert (await open_directory(filesystem)).was_closed_cleanly
