"""A warning about subscribed topics that do not exist.

A group may subscribe to a topic before it is created, so the consumer continues. But the name may also be
misspelt, and then no record would ever arrive.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from typing import Final

from kio.schema.metadata.v13.request import MetadataRequest, MetadataRequestTopic

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.errors import BrokerError, BrokerUnavailableError, SecurityError
from barnabas.protocol.client.consumer_apis import METADATA
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.nearest_name import nearest_name
from barnabas.protocol.primitive import TopicName

log = logging.getLogger(__name__)

PAUSE_SECONDS: Final = 1.0
"""How long a topic may be missing without a warning: a producer that starts now may be about to create it."""


async def warn_of_missing_topics(cluster: Cluster, names: Collection[str]) -> None:
    """Log one line for each missing topic, with the name of an existing topic that the user may mean.

    Errors are left to the parts that read the topics.
    """
    try:
        if not await _missing(cluster, names):
            return
        await asyncio.sleep(PAUSE_SECONDS)
        missing = await _missing(cluster, names)
        known = await _known_topics(cluster) if missing else []
    except (BrokerError, BrokerUnavailableError, SecurityError):
        return
    for name in missing:
        nearest = nearest_name(name, known)
        hint = f" Did you mean {nearest}?" if nearest else ""
        log.warning("The topic %s does not exist; no record arrives until it is created.%s", name, hint)


async def _missing(cluster: Cluster, names: Collection[str]) -> list[str]:
    asked = tuple(MetadataRequestTopic(topic_id=None, name=TopicName(name)) for name in names)
    response = await cluster.ask(METADATA, _request(asked))
    return [
        str(topic.name)
        for topic in response.topics
        if topic.error_code is ErrorCode.unknown_topic_or_partition
    ]


async def _known_topics(cluster: Cluster) -> list[str]:
    response = await cluster.ask(METADATA, _request(None))
    return [str(topic.name) for topic in response.topics if not topic.is_internal]


def _request(topics: tuple[MetadataRequestTopic, ...] | None) -> MetadataRequest:
    return MetadataRequest(
        topics=topics, allow_auto_topic_creation=False, include_topic_authorized_operations=False
    )
