"""The parts that all logs of a data directory share."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from typing import NamedTuple

from barnabas.runtime.metrics import MS_BOUNDS, Histogram
from barnabas.storage.files.full_disk import FullDisk
from barnabas.storage.files.open_files import OpenFiles
from barnabas.storage.filesystem import FileSystem
from barnabas.storage.key_buckets import KeyBuckets
from barnabas.storage.state.newest_batches import KeptBatches
from barnabas.storage.state.offline_logs import OfflineLogs


class SharedParts(NamedTuple):
    """One object for the whole directory."""

    open_files: OpenFiles
    full_disk: FullDisk
    offline_logs: OfflineLogs
    key_buckets: KeyBuckets
    damaged_indexes: set[str]
    """The paths of index files that were found to be damaged, until recovery has rebuilt them."""
    flush_ms: Histogram
    """How long each sync of a log's records took; with log.flush=always, together with the write."""
    kept_batches: KeptBatches

    @classmethod
    def make(cls, filesystem: FileSystem, directory: str, open_files_max: int) -> SharedParts:
        """The parts of a directory that begins."""
        return cls(
            open_files=OpenFiles(open_files_max),
            full_disk=FullDisk(filesystem, directory),
            offline_logs=OfflineLogs(),
            key_buckets=KeyBuckets(),
            damaged_indexes=set(),
            flush_ms=Histogram(MS_BOUNDS),
            kept_batches=KeptBatches(),
        )


@contextmanager
def measured_ms(histogram: Histogram) -> Generator[None]:
    """Observes how long the block takes, unless it fails."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    yield
    histogram.observe(round((loop.time() - began) * 1000))
