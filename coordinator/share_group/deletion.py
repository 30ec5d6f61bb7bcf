"""Deleting a share group (API DeleteGroups), and forgetting deleted topics.

The group's delivery state is deleted first, its records last. A deletion that fails or is interrupted leaves
a group that can be deleted again, never state without a group.
"""

from collections.abc import Collection
from uuid import UUID

from barnabas.coordinator.group.steps import Steps
from barnabas.coordinator.replay.interfaces import TopicCatalog
from barnabas.coordinator.replay.steps import Write
from barnabas.coordinator.share_group.initialisation import without_topics
from barnabas.coordinator.share_group.interfaces import ShareStateInitialiser
from barnabas.coordinator.share_group.offsets import delete_state, require_empty
from barnabas.coordinator.share_group.record_factory import group_tombstones, state_partition_metadata
from barnabas.coordinator.share_group.share_group import ShareGroup
from barnabas.protocol.errors import ApiError, ErrorCode


def delete_group(group: ShareGroup, catalog: TopicCatalog, share_state: ShareStateInitialiser) -> Steps[None]:
    """Delete all state of the group in existing topics, then the group. Raises the first failure as its
    ApiError.
    """
    require_empty(group)
    known = group.state_partitions
    topic_ids = {*known.initialised, *known.initialising, *known.deleting}
    shapes = [shape for topic in topic_ids if (shape := catalog.topic_by_id(topic)) is not None]
    outcomes = yield from delete_state(group, shapes, share_state)
    # After a failure the topics stay marked as being deleted, for the next attempt.
    for code, message in outcomes.values():
        if code is not ErrorCode.none:
            raise ApiError(code, message)
    yield Write(group_tombstones(group.group_id))


def forget_topics(group: ShareGroup, topic_ids: Collection[UUID]) -> Steps[None]:
    """Remove deleted topics from the lists of the group. Their share state was deleted with their logs."""
    left = without_topics(group.state_partitions, topic_ids)
    if left != group.state_partitions:
        yield Write([state_partition_metadata(group.group_id, left)])
