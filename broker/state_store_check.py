"""Whether the share state that a data directory holds is where this broker would look for it.

Groups whose state is in the other store would begin anew, and be handed what they have long accepted: such a
directory is refused at start. What is left of groups that were deleted, in whichever store, doesn't count.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from barnabas.broker.internal_topics.share_state_topic import ShareStateTopic
from barnabas.coordinator.metadata.topic_names import SHARE_STATE_TOPIC
from barnabas.protocol.identity import SharePartitionKey
from barnabas.storage.errors import InvalidDirectory
from barnabas.storage.format.share_index import group_hash
from barnabas.storage.log import PartitionLog

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


async def check_state_store(broker: Broker) -> None:
    """Load the share state, as far as it is in its topic. Raises InvalidDirectory, or StorageError.

    Of a topic that is not to be used no partition may be unreadable: nobody knows what it holds.
    """
    if broker.share_state is not None:
        await broker.share_state.loader.load()
        await _check_logs(broker, broker.share_state)
    elif SHARE_STATE_TOPIC in broker.metadata.image.topics_by_name:
        await _check_topic(broker)


async def _check_topic(broker: Broker) -> None:
    other = ShareStateTopic(broker.config, broker.metadata, broker.logs, broker.log_directory, broker.clock)
    await other.loader.load_all()
    topics = broker.metadata.image.topics_by_id
    for key in other.coordinator.states():
        if key.topic_id in topics:
            raise _refusal(broker, key, f"in {SHARE_STATE_TOPIC}", "topic")


async def _check_logs(broker: Broker, share_state: ShareStateTopic) -> None:
    """Asks the logs of what the topic doesn't hold; where nothing is amiss that is nothing, or next to it."""
    for key in _initialised(broker):
        if share_state.coordinator.holds(key):
            continue
        topic = broker.metadata.image.topics_by_id[key.topic_id]
        if _has_state(await broker.logs.open(topic, key.partition), key.group_id):
            raise _refusal(broker, key, f"in the log of {topic.name}-{key.partition}", "log")


def _initialised(broker: Broker) -> Iterator[SharePartitionKey]:
    """The share-partitions that groups have state in, of topics that exist."""
    groups = broker.groups.share
    for group in groups.list_groups():
        for topic_id, topic in groups.initialised_partitions(group.group_id).items():
            for partition in topic.partitions:
                yield SharePartitionKey(group.group_id, topic_id, partition)


def _has_state(log: PartitionLog, group_id: str) -> bool:
    """Whether the group's newest record in the log is no tombstone."""
    if not log.may_have_share_state(group_id):
        return False
    newest = next(log.newest_control_entries(group_hash(group_id)), None)
    return newest is not None and not newest.tombstone


def _refusal(broker: Broker, key: SharePartitionKey, where: str, store: str) -> InvalidDirectory:
    return InvalidDirectory(
        f"{broker.log_directory.path} holds share state of group {key.group_id} {where}: start with "
        f"share.state.store={store}, or delete the group's offsets with that first."
    )
