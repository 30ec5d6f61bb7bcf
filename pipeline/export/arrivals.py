"""The number of restored records, by the ends of the target's partitions: only for a progress bar.

Offsets without records count, too. Only reading back gives exact numbers (`restore_partition`).
"""

from __future__ import annotations

import asyncio
from uuid import UUID

from barnabas.client.cluster.topics import LATEST, Topics
from barnabas.client.waiting.patience import Retries
from barnabas.pipeline.export.restore_state import RestoreState
from barnabas.pipeline.servers import Servers
from barnabas.protocol.identity import TopicIdPartition

GIVE_UP_MS = 1_000
"""Short, because it is only for the progress bar."""


def arrived_count(servers: Servers, state: RestoreState) -> int:
    """The offsets of the target behind the restore's beginning. Raises the client's errors."""
    return asyncio.run(_arrived_count(servers, state))


async def _arrived_count(servers: Servers, state: RestoreState) -> int:
    cluster = servers.cluster()
    topics = Topics(cluster, Retries(give_up_ms=GIVE_UP_MS))
    begins = {
        TopicIdPartition(UUID(topic.topic_id), index): begin_offset
        for topic in state.topics
        for index, begin_offset in enumerate(topic.begin_offsets)
    }
    try:
        await topics.find([topic.name for topic in state.topics])
        ends = await topics.offsets(list(begins), LATEST)
    finally:
        topics.close()
        cluster.close()
    return sum(max(0, (ends[partition] or 0) - begin_offset) for partition, begin_offset in begins.items())
