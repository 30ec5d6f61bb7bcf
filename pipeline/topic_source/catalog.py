"""Topics and offsets of a cluster, for the driver, which runs no event loop.

One connection to the cluster serves all questions of a query; the first question opens it. It is not pickled.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Coroutine, Mapping
from typing import Any, TypeVar

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.cluster.topics import Isolation, Topic, Topics
from barnabas.client.errors import UnknownTopicError
from barnabas.pipeline.servers import Servers
from barnabas.protocol.identity import TopicIdPartition

_Answer = TypeVar("_Answer")


class Catalog:
    """Questions about topics, each answered before the call returns. `close` it once."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self._loop: asyncio.AbstractEventLoop | None = None
        self._cluster: Cluster | None = None
        self._topics: Topics | None = None

    def find(self, names: Collection[str]) -> list[Topic]:
        """The topics with these names. Raises `UnknownTopicError`, and the other errors of `Topics.find`."""
        return self._run(self._opened().find(names))

    def find_known(self, names: Collection[str]) -> list[Topic]:
        """The topics of these that exist."""
        try:
            return self.find(names)
        except UnknownTopicError as error:
            return self.find([name for name in names if name not in error.names])

    def match(self, pattern: str) -> list[Topic]:
        """The topics whose whole names match a regular expression."""
        compiled = re.compile(pattern)
        return [topic for topic in self._run(self._opened().find_all()) if compiled.fullmatch(topic.name)]

    def offsets(
        self,
        partitions: Collection[TopicIdPartition],
        at: int | Mapping[TopicIdPartition, int],
        isolation: Isolation,
    ) -> dict[TopicIdPartition, int | None]:
        """See `Topics.offsets`."""
        return self._run(self._opened().offsets(partitions, at, isolation))

    def close(self) -> None:
        """Closes the connections. Does nothing if there are none."""
        loop, self._loop = self._loop, None
        if loop is None or self._topics is None or self._cluster is None:
            return
        self._topics.close()
        self._cluster.close()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()

    def __getstate__(self) -> dict[str, Any]:
        return {"_servers": self._servers, "_loop": None, "_cluster": None, "_topics": None}

    def _opened(self) -> Topics:
        if self._loop is None or self._topics is None:
            self._loop = asyncio.new_event_loop()
            self._cluster = self._servers.cluster()
            self._topics = Topics(self._cluster)
        return self._topics

    def _run(self, question: Coroutine[Any, Any, _Answer]) -> _Answer:
        assert self._loop is not None, "opened before it is asked"
        return self._loop.run_until_complete(question)
