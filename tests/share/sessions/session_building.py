"""Share sessions of given partitions, for the tests that name partitions by topic id and index."""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.protocol.decode.acknowledgements import AckPartition, AckTopic
from barnabas.protocol.identity import TopicIdPartition
from barnabas.share.sessions.session import (
    SessionPartition,
    SessionPartitions,
    ShareSession,
    ShareSessionKey,
    named_partitions,
)


def session_partitions(partitions: Iterable[TopicIdPartition], group_id: str = "group") -> SessionPartitions:
    topics = [AckTopic(topic_id, [AckPartition(index, [])]) for topic_id, index in partitions]
    return named_partitions(group_id, topics, {})


def session_of(
    *partitions: TopicIdPartition, group_id: str = "group", member_id: str = "member"
) -> ShareSession:
    key = ShareSessionKey(group_id, member_id)
    return ShareSession(key, session_partitions(partitions, group_id), connection_id=1)


def in_session(session: ShareSession, partition: TopicIdPartition) -> SessionPartition:
    """The session's own one, or one outside of it."""
    known = session.by_place.get((partition.topic_id.int, partition.partition))
    (new,) = session_partitions([partition], session.key.group_id).values()
    return known or new


def partitions_of(session: Iterable[SessionPartition]) -> list[TopicIdPartition]:
    return [partition.partition for partition in session]


def update(
    session: ShareSession, added: Iterable[TopicIdPartition], forgotten: Iterable[TopicIdPartition]
) -> None:
    session.update(session_partitions(added), [(topic_id, [index]) for topic_id, index in forgotten])
