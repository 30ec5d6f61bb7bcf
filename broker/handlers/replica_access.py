"""Who may follow the metadata log, and what every follower's request must say right (KIP-595, KIP-630).

A follower comes in on the listener for brokers and says which node it is. Ordinary consumers, and whoever
comes in elsewhere, see what Kafka's brokers show them: there is no such topic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.network.handler import RequestContext
    from barnabas.broker.node.broker import Broker


def is_follower(broker: Broker, context: RequestContext, replica_id: int) -> bool:
    """Whether the request comes from another node. One with our own id is no follower of ours."""
    return context.listener.inter_broker and replica_id >= 0 and replica_id != broker.node_id


def is_other_cluster(broker: Broker, cluster_id: str | None) -> bool:
    """Whether the follower names a cluster, and it isn't ours."""
    return cluster_id is not None and cluster_id != broker.cluster_id


def check_leader(broker: Broker, leader_epoch: int) -> None:
    """Refuse a follower that knows of an older leader epoch, or a newer one; raises `ApiError`.

    An unknown epoch (-1) counts as older: the answer tells which one it is.
    """
    ours = broker.metadata.node_epoch
    if leader_epoch != ours:
        is_older = leader_epoch < ours
        raise ApiError(ErrorCode.fenced_leader_epoch if is_older else ErrorCode.unknown_leader_epoch)
