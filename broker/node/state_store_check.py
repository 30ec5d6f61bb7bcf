"""Checks that a data directory has no share state in the store that is not in use.

A group with state in the other store would begin again, and get records that it has already accepted. Such a
directory is refused at the start. Remains of deleted groups do not count.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from barnabas.broker.internal_topics.share_state_topic import ShareStateTopic
from barnabas.coordinator.metadata.topic_names import SHARE_STATE_TOPIC
from barnabas.protocol.identity import SharePartitionKey
from barnabas.storage.errors import InvalidDirectory
from barnabas.storage.format.share_index import group_hash
from barnabas.storage.log.partition_log import PartitionLog

if TYPE_CHECKING:
    from barnabas.coordinator.metadata.image import MetadataImage
    from barnabas.coordinator.metadata.partition_logs import PartitionLogs
    from barnabas.coordinator.share_group.coordinator import ShareGroupCoordinator


class StateStoreCheck(NamedTuple):
    """Looks for share state in the store that is not in use. Raises InvalidDirectory or StorageError."""

    path: str
    """The data directory, for messages."""
    image: MetadataImage
    logs: PartitionLogs
    groups: ShareGroupCoordinator

    async def check_topic(self, unused: ShareStateTopic) -> None:
        """The check with share.state.store=log. Every partition of the topic must be readable, because an
        unreadable one could contain state.
        """
        if SHARE_STATE_TOPIC not in self.image.topics_by_name:
            return
        await unused.load_all()
        for key in unused.coordinator.states():
            if key.topic_id in self.image.topics_by_id:
                raise self._refusal(key, f"in {SHARE_STATE_TOPIC}", "topic")

    async def check_logs(self, used: ShareStateTopic) -> None:
        """The check with share.state.store=topic, after the topic is loaded. Opens only the logs of
        share-partitions without state in the topic; normally there are none.
        """
        for key in self._initialised():
            if used.coordinator.holds(key):
                continue
            topic = self.image.topics_by_id[key.topic_id]
            if _has_state(await self.logs.open(topic, key.partition), key.group_id):
                raise self._refusal(key, f"in the log of {topic.name}-{key.partition}", "log")

    def _initialised(self) -> Iterator[SharePartitionKey]:
        """The share-partitions of existing topics in which groups have state."""
        for group in self.groups.list_groups():
            for topic_id, topic in self.groups.initialised_partitions(group.group_id).items():
                for partition in topic.partitions:
                    yield SharePartitionKey(group.group_id, topic_id, partition)

    def _refusal(self, key: SharePartitionKey, where: str, store: str) -> InvalidDirectory:
        return InvalidDirectory(
            f"{self.path} has share state of group {key.group_id} {where}. Start with "
            f"share.state.store={store}, or first delete the group's offsets with that setting."
        )


def _has_state(log: PartitionLog, group_id: str) -> bool:
    """Whether the group has a record in the log, and its newest one is not a tombstone."""
    if not log.share_records.may_have_state(group_id):
        return False
    newest = next(log.share_records.newest(group_hash(group_id)), None)
    return newest is not None and not newest.tombstone
