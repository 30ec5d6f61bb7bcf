"""Removes all topics and groups of a running broker, so that the next test finds it new.

Clients are disconnected first, and the coordinators forget their state before the topics go: so nothing is
written about single groups, and the time of a reset depends on the logs that exist.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.network.server import Server

if TYPE_CHECKING:
    from barnabas.broker.internal_topics.coordinator_topic import CoordinatorTopic
    from barnabas.broker.node.broker import Broker


async def reset(broker: Broker, server: Server) -> None:
    """Disconnect all clients, and remove all topics, groups, transactions, and the settings of groups.

    Ends when the logs are removed from the disk. Users, quotas and the broker's own settings stay. Raises
    ApiError, such as THROTTLING_QUOTA_EXCEEDED if too many changes of the metadata wait.
    """
    await server.disconnect_clients()
    coordinators = _coordinators(broker)
    for coordinator in coordinators:
        await coordinator.unload()
    try:
        await broker.metadata.reset()
        await broker.logs.deletions_ended()
    finally:
        for coordinator in coordinators:
            coordinator.begin_empty()


def _coordinators(broker: Broker) -> list[CoordinatorTopic]:
    share_state = () if broker.share_state is None else (broker.share_state,)
    return [broker.offsets_topic, broker.transactions, *share_state]
