"""A client's view of the cluster: brokers, topics by id, and the leader of each partition (pure).

The view ages. Metadata responses replace it, and a refusal that names another leader corrects one partition
(KIP-951). Topics are known by id (KIP-516), because a topic that was deleted and created again with the same
name is another topic. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple
from uuid import UUID

from kio.schema.metadata.v13.request import MetadataRequest, MetadataRequestTopic
from kio.schema.metadata.v13.response import MetadataResponse

from barnabas.client.network.address import Address
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.message_parts import NodeEndpoint

TOPIC_NAMES_MAX: Final = 10_000
"""Names are kept longer than the assignment, because records of a topic may be in flight; the oldest are
dropped."""


class Leader(NamedTuple):
    """The leader of a partition, and the leader epoch in which it became the leader."""

    node_id: int
    leader_epoch: int


class ClusterView:
    """The last known state of the cluster."""

    def __init__(self) -> None:
        self.brokers: dict[int, Address] = {}
        """By node id."""
        self._topic_names: dict[UUID, str] = {}
        self._leaders: dict[TopicIdPartition, Leader] = {}

    def topic_name(self, topic_id: UUID) -> str | None:
        return self._topic_names.get(topic_id)

    def leader(self, partition: TopicIdPartition) -> int | None:
        """The node id of the leader; None if there is no leader, or its address is unknown."""
        leader = self._leaders.get(partition)
        return leader.node_id if leader is not None and leader.node_id in self.brokers else None

    def has_topic(self, topic_id: UUID) -> bool:
        """Whether partitions of the topic are known, with or without a leader."""
        return any(partition.topic_id == topic_id for partition in self._leaders)

    def apply(self, response: MetadataResponse, asked: Iterable[UUID]) -> None:
        """Apply a response about the topics that were `asked` for; the leaders of other topics are dropped.

        A topic that the broker does not know (any more) loses its leaders. A topic without a name in the
        response, because of a temporary error, keeps its known state.
        """
        self.brokers = {broker.node_id: Address(broker.host, broker.port) for broker in response.brokers}
        known = set(asked)
        for topic in response.topics:
            if topic.topic_id is None:
                continue
            if topic.error_code is ErrorCode.unknown_topic_id:
                known.discard(topic.topic_id)
                continue
            if topic.name is not None:
                self._topic_names[topic.topic_id] = topic.name
            for described in topic.partitions:
                partition = TopicIdPartition(topic.topic_id, described.partition_index)
                self._leaders[partition] = Leader(described.leader_id, described.leader_epoch)
        self._leaders = {key: leader for key, leader in self._leaders.items() if key.topic_id in known}
        while len(self._topic_names) > TOPIC_NAMES_MAX:
            del self._topic_names[next(iter(self._topic_names))]

    def note_leader(
        self, partition: TopicIdPartition, leader: Leader, endpoints: Iterable[NodeEndpoint]
    ) -> bool:
        """Apply a leader that a refusal named.

        Returns whether this changed the view; an older epoch is ignored.
        """
        known = self._leaders.get(partition)
        if known is not None and leader.leader_epoch <= known.leader_epoch:
            return False
        for endpoint in endpoints:
            self.brokers[endpoint.node_id] = Address(endpoint.host, endpoint.port)
        if leader.node_id not in self.brokers:
            return False
        self._leaders[partition] = leader
        return True


def metadata_request(topic_ids: Iterable[UUID]) -> MetadataRequest:
    """A request for these topics; the response always contains the brokers."""
    topics = tuple(MetadataRequestTopic(topic_id=topic_id, name=None) for topic_id in topic_ids)
    return MetadataRequest(
        topics=topics, allow_auto_topic_creation=False, include_topic_authorized_operations=False
    )
