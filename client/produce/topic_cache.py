"""The topics that a producer writes to, looked up at their first use and again when the look-up is old."""

from __future__ import annotations

import asyncio
from typing import Final

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.cluster.topics import Topic, Topics
from barnabas.client.waiting.patience import Retries

_MS_PER_SECOND: Final = 1000


class TopicCache:
    """Owns its cluster. Call `close` once."""

    def __init__(self, cluster: Cluster, retries: Retries, max_age_ms: int) -> None:
        self._cluster = cluster
        self._topics = Topics(cluster, retries)
        self._max_age = max_age_ms / _MS_PER_SECOND
        self._found: dict[str, tuple[Topic, float]] = {}
        """Each topic, and when its entry becomes too old."""

    async def find(self, name: str) -> Topic:
        """The topic. Raises `UnknownTopicError`, `BrokerError` and `BrokerUnavailableError`."""
        now = asyncio.get_running_loop().time()
        found = self._found.get(name)
        if found is not None and now < found[1]:
            return found[0]
        (topic,) = await self._topics.find([name])
        self._found[name] = topic, now + self._max_age
        return topic

    def forget(self) -> None:
        """Topics may have been deleted, and created again: look them up again."""
        self._found.clear()

    def close(self) -> None:
        self._topics.close()
        self._cluster.close()
