"""The checks of requests from followers of the metadata log (KIP-595, KIP-630).

A follower uses the listener for brokers and names its own node. For ordinary consumers and on other listeners
the topic does not exist, as on Kafka's brokers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.network.handler import RequestContext


def is_follower(node_id: int, context: RequestContext, replica_id: int) -> bool:
    """Whether the request comes from a node other than this one, which does not follow itself."""
    return context.listener.inter_broker and replica_id >= 0 and replica_id != node_id


def is_other_cluster(own_id: str, cluster_id: str | None) -> bool:
    """Whether the follower names another cluster."""
    return cluster_id is not None and cluster_id != own_id


def check_leader(node_epoch: int, leader_epoch: int) -> None:
    """Raises `ApiError` if the follower has an older or a newer leader epoch.

    An unknown epoch (-1) counts as older; the response has the current one.
    """
    if leader_epoch != node_epoch:
        is_older = leader_epoch < node_epoch
        raise ApiError(ErrorCode.fenced_leader_epoch if is_older else ErrorCode.unknown_leader_epoch)
