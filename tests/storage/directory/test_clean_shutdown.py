"""The mark of a clean end: it is known whether an earlier loss still matters."""

from __future__ import annotations

import pytest

from tests.storage.directory.test_log_directory import open_directory
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
