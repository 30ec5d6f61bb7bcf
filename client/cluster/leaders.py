"""Connections to the leaders of partitions, for requests that only a leader answers.

There is one connection to each broker. It is opened at its first use, and opened again when it was lost. The
leader of a partition is looked up when it is unknown, when a broker refused because it is not the leader, and
when the connection was lost. Each step is tried once; the caller decides with its `Patience` when to try
again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from uuid import UUID

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.cluster.metadata import Leader
from barnabas.client.errors import BrokerUnavailableError, TopicGoneError
from barnabas.client.network.connection import Connection
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.message_parts import NodeEndpoint


class Leaders:
    """The leaders of the partitions in use. Call `close` once."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._connections: dict[int, Connection] = {}
        self._topic_ids: set[UUID] = set()
        self._doubted: set[TopicIdPartition] = set()
        """Partitions whose leader must be looked up before it is used again."""
        self._looking = asyncio.Lock()

    def connected(self, partition: TopicIdPartition) -> Connection | None:
        """The open connection to the partition's leader, or None."""
        if partition in self._doubted:
            return None
        node_id = self._cluster.view.leader(partition)
        connection = None if node_id is None else self._connections.get(node_id)
        return connection if connection is not None and connection.is_open else None

    async def connection(self, partition: TopicIdPartition) -> Connection:
        """The connection to the partition's leader.

        Raises `BrokerUnavailableError` for a temporary error, such as no leader, and `TopicGoneError` if the
        broker that answered does not know the topic: it may not have learned of it yet.
        """
        async with self._looking:
            node_id = await self._leader(partition)
            connection = self._connections.get(node_id)
            if connection is None or not connection.is_open:
                connection = await self._open(node_id, partition)
                self._connections[node_id] = connection
            return connection

    def mark_stale(
        self,
        partition: TopicIdPartition,
        leader: Leader | None = None,
        endpoints: Iterable[NodeEndpoint] = (),
    ) -> None:
        """The partition's leader refused a request, and perhaps named another leader (KIP-951)."""
        if leader is None or not self._cluster.view.note_leader(partition, leader, endpoints):
            self._doubted.add(partition)

    def close(self) -> None:
        """Close the connections."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    async def _leader(self, partition: TopicIdPartition) -> int:
        view = self._cluster.view
        self._topic_ids.add(partition.topic_id)
        if partition in self._doubted or view.leader(partition) is None:
            await self._cluster.refresh(self._topic_ids)
            self._doubted.clear()
        node_id = view.leader(partition)
        if node_id is not None:
            return node_id
        name = view.topic_name(partition.topic_id)
        if not view.has_topic(partition.topic_id):
            raise TopicGoneError(partition.topic_id, name)
        raise BrokerUnavailableError(f"{name}-{partition.partition} has no leader at the moment.")

    async def _open(self, node_id: int, partition: TopicIdPartition) -> Connection:
        try:
            return await self._cluster.open(self._cluster.view.brokers[node_id])
        except BrokerUnavailableError:
            self._doubted.add(partition)
            raise
