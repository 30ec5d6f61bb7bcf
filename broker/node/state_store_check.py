"""Whether the share state that a data directory holds is where this broker would look for it.

Groups whose state is in the other store would begin anew, and be handed what they have long accepted: such a
directory is refused at start. What is left of groups that were deleted, in whichever store, doesn't count.
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
    """Looks for share state in the store that is not in use. Raises InvalidDirectory, or StorageError."""

    path: str
    """The data directory, for messages."""
    image: MetadataImage
    logs: PartitionLogs
    groups: ShareGroupCoordinator

    async def check_topic(self, unused: ShareStateTopic) -> None:
        """With share.state.store=log. Every partition of the topic must be readable: an unreadable one could
        hold state.
        """
        if SHARE_STATE_TOPIC not in self.image.topics_by_name:
            return
        await unused.load_all()
        for key in unused.coordinator.states():
            if key.topic_id in self.image.topics_by_id:
                raise self._refusal(key, f"in {SHARE_STATE_TOPIC}", "topic")

    async def check_logs(self, used: ShareStateTopic) -> None:
        """With share.state.store=topic, whose state is loaded. Opens only the logs of share-partitions that
        the topic does not hold; normally there are none.
        """
        for key in self._initialised():
            if used.coordinator.holds(key):
                continue
            topic = self.image.topics_by_id[key.topic_id]
            if _has_state(await self.logs.open(topic, key.partition), key.group_id):
                raise self._refusal(key, f"in the log of {topic.name}-{key.partition}", "log")

    def _initialised(self) -> Iterator[SharePartitionKey]:
        """The share-partitions that groups have state in, of topics that exist."""
        for group in self.groups.list_groups():
            for topic_id, topic in self.groups.initialised_partitions(group.group_id).items():
                for partition in topic.partitions:
                    yield SharePartitionKey(group.group_id, topic_id, partition)

    def _refusal(self, key: SharePartitionKey, where: str, store: str) -> InvalidDirectory:
        return InvalidDirectory(
            f"{self.path} holds share state of group {key.group_id} {where}: start with "
            f"share.state.store={store}, or delete the group's offsets with that first."
        )


def _has_state(log: PartitionLog, group_id: str) -> bool:
    """Whether the group's newest record in the log is no tombstone."""
    if not log.may_have_share_state(group_id):
        return False
    newest = next(log.newest_control_entries(group_hash(group_id)), None)
    return newest is not None and not newest.tombstone
