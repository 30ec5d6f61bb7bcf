"""Connections to a cluster that a process keeps from one read to the next.

    with cached_reader(access) as reader:
        for fetched in reader.items(fetch(reader.topics, ...)): ...

Spark's Python workers outlive their tasks. Making an event loop, connecting, negotiating versions and asking
for a partition's leader takes longer than reading a small batch. So a finished read keeps its reader
for the next read of the same cluster with the same settings. Only a read that ended well keeps it, so
a kept reader has no request under way. The loop runs only during a read.

Bounds: `CACHED_MAX` readers without work, each kept for at most `CACHED_SECONDS`. Their metadata of the
cluster is not older than that.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import time
from collections.abc import AsyncGenerator, Coroutine, Generator
from contextlib import contextmanager
from threading import Lock
from typing import Any, Final, NamedTuple, TypeVar

from barnabas.client.consume.topic_reader import ReadSettings, TopicReader
from barnabas.pipeline.servers import Servers

CACHED_MAX: Final = 4
CACHED_SECONDS: Final = 300.0

_Item = TypeVar("_Item")


class Access(NamedTuple):
    """The cluster that is read, and the settings of the read."""

    servers: Servers
    settings: ReadSettings


class CachedReader:
    """An event loop, and a `TopicReader` on it."""

    def __init__(self, access: Access) -> None:
        self.made_at = time.monotonic()
        self._loop = asyncio.new_event_loop()
        self._cluster = access.servers.cluster()
        self.topics = TopicReader(self._cluster, access.settings)

    def items(self, items: AsyncGenerator[_Item]) -> Generator[_Item]:
        """The items of an asynchronous generator, each awaited when the caller asks for it."""
        try:
            while True:
                try:
                    item = self._run(anext(items))
                except StopAsyncIteration:
                    return
                yield item
        finally:
            self._run(items.aclose())

    def catch_up(self) -> None:
        """Handles events since the last read, such as a connection that the broker closed."""
        self._run(asyncio.sleep(0))

    def close(self) -> None:
        self.topics.close()
        self._cluster.close()
        self._run(self._loop.shutdown_asyncgens())
        self._loop.close()

    def _run(self, awaited: Coroutine[Any, Any, _Item]) -> _Item:
        return self._loop.run_until_complete(awaited)


class _ReaderCache:
    """The readers without work of this process. A forked process begins with none."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._readers: list[tuple[Access, CachedReader]] = []
        self._process_id = os.getpid()

    def take(self, access: Access) -> CachedReader:
        """A kept reader, or a new one."""
        while (reader := self._pop(access)) is not None:
            if time.monotonic() - reader.made_at < CACHED_SECONDS:
                reader.catch_up()
                return reader
            reader.close()
        return CachedReader(access)

    def leave(self, access: Access, reader: CachedReader) -> None:
        with self._lock:
            self._readers.append((access, reader))
            surplus = self._readers.pop(0)[1] if len(self._readers) > CACHED_MAX else None
        if surplus is not None:
            surplus.close()

    def close(self) -> None:
        with self._lock:
            readers, self._readers = self._readers, []
        if self._process_id == os.getpid():
            for _, reader in readers:
                reader.close()

    def _pop(self, access: Access) -> CachedReader | None:
        with self._lock:
            if self._process_id != os.getpid():
                # The sockets belong to the parent of this forked process.
                self._readers, self._process_id = [], os.getpid()
            for index, (kept, reader) in enumerate(self._readers):
                if kept == access:
                    del self._readers[index]
                    return reader
        return None


_cache = _ReaderCache()
atexit.register(_cache.close)


@contextmanager
def cached_reader(access: Access) -> Generator[CachedReader]:
    """A reader that no other thread uses meanwhile. It isn't kept if the block raises or is broken off."""
    reader = _cache.take(access)
    try:
        yield reader
    except BaseException:
        reader.close()
        raise
    _cache.leave(access, reader)


def close_cached_readers() -> None:
    """Closes all kept connections; reads that are under way keep theirs."""
    _cache.close()
