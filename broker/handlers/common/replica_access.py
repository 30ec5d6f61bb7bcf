"""The checks of requests from followers of the metadata log (KIP-595, KIP-630).

A follower uses the listener for brokers and names its own node. For ordinary consumers and on other listeners
the topic does not exist, as on Kafka's brokers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.network.handler import RequestContext
    from barnabas.broker.node.broker import Broker


def is_follower(broker: Broker, context: RequestContext, replica_id: int) -> bool:
    """Whether the request comes from another node; a node does not follow itself."""
    return context.listener.inter_broker and replica_id >= 0 and replica_id != broker.node_id


def is_other_cluster(broker: Broker, cluster_id: str | None) -> bool:
    """Whether the follower names another cluster."""
    return cluster_id is not None and cluster_id != broker.cluster_id


def check_leader(broker: Broker, leader_epoch: int) -> None:
    """Raises `ApiError` if the follower has an older or a newer leader epoch.

    An unknown epoch (-1) counts as older; the response has the current one.
    """
    current = broker.metadata.node_epoch
    if leader_epoch != current:
        is_older = leader_epoch < current
        raise ApiError(ErrorCode.fenced_leader_epoch if is_older else ErrorCode.unknown_leader_epoch)
