"""Ways into a cluster that a process keeps from one read to the next.

    with kept_reader(access) as reader:
        for fetched in reader.items(fetch(reader.topics, ...)): ...

Spark's Python workers outlive their tasks. To make an event loop, to connect, to agree on versions and to ask
who leads a partition takes longer than to read a small batch, so whoever has read leaves all that behind for
the next one that wants the same cluster in the same way. Only a read that went well to its end leaves
anything: what others find has nothing under way. The loop runs while somebody reads, and at no other time.

Bounds: `KEPT_MAX` readers without work, `KEPT_SECONDS` of life each, which is also how long a view of the
cluster is believed at most.
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

from barnabas.client.topic_reader import ReadSettings, TopicReader
from barnabas.pipeline.servers import Servers

KEPT_MAX: Final = 4
KEPT_SECONDS: Final = 300.0

_Item = TypeVar("_Item")


class Access(NamedTuple):
    """Which cluster is read, and how."""

    servers: Servers
    settings: ReadSettings


class KeptReader:
    """A loop of its own, and a `TopicReader` on it."""

    def __init__(self, access: Access) -> None:
        self.made_at = time.monotonic()
        self._loop = asyncio.new_event_loop()
        self._cluster = access.servers.cluster()
        self.topics = TopicReader(self._cluster, access.settings)

    def items(self, items: AsyncGenerator[_Item]) -> Generator[_Item]:
        """An asynchronous generator's items, each awaited when it is asked for."""
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
        """Take notice of what has happened meanwhile, such as a connection that the broker closed."""
        self._run(asyncio.sleep(0))

    def close(self) -> None:
        self.topics.close()
        self._cluster.close()
        self._run(self._loop.shutdown_asyncgens())
        self._loop.close()

    def _run(self, awaited: Coroutine[Any, Any, _Item]) -> _Item:
        return self._loop.run_until_complete(awaited)


class _Kept:
    """The readers without work, of this process: one that was forked off begins with none."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._readers: list[tuple[Access, KeptReader]] = []
        self._process_id = os.getpid()

    def take(self, access: Access) -> KeptReader:
        """One that was left behind, or a new one."""
        while (reader := self._pop(access)) is not None:
            if time.monotonic() - reader.made_at < KEPT_SECONDS:
                reader.catch_up()
                return reader
            reader.close()
        return KeptReader(access)

    def leave(self, access: Access, reader: KeptReader) -> None:
        with self._lock:
            self._readers.append((access, reader))
            surplus = self._readers.pop(0)[1] if len(self._readers) > KEPT_MAX else None
        if surplus is not None:
            surplus.close()

    def close(self) -> None:
        with self._lock:
            readers, self._readers = self._readers, []
        if self._process_id == os.getpid():
            for _, reader in readers:
                reader.close()

    def _pop(self, access: Access) -> KeptReader | None:
        with self._lock:
            if self._process_id != os.getpid():
                # Sockets are shared with the process that this one was forked off: they are its own.
                self._readers, self._process_id = [], os.getpid()
            for index, (kept, reader) in enumerate(self._readers):
                if kept == access:
                    del self._readers[index]
                    return reader
        return None


_kept = _Kept()
atexit.register(_kept.close)


@contextmanager
def kept_reader(access: Access) -> Generator[KeptReader]:
    """A reader that is nobody else's meanwhile. One whose use fails, or is broken off, isn't kept."""
    reader = _kept.take(access)
    try:
        yield reader
    except BaseException:
        reader.close()
        raise
    _kept.leave(access, reader)


def close_kept_readers() -> None:
    """Drop all connections that are kept; reads that go on are not concerned."""
    _kept.close()
