"""The application's part in a rebalance (KIP-848, "Rebalance listener")."""

from __future__ import annotations

from collections.abc import Collection

from barnabas.client.topic_partition import TopicPartition


class RebalanceListener:
    """Override the methods of interest. They run while a poll waits, one at a time.

    They may call the consumer's methods except those that poll, unsubscribe or close. If one raises an
    exception, the rebalance continues, and the poll raises it.
    """

    async def on_assigned(self, partitions: Collection[TopicPartition]) -> None:
        """The consumer has these partitions in addition; nothing of them is fetched yet, so it may seek."""

    async def on_revoked(self, partitions: Collection[TopicPartition]) -> None:
        """The consumer gives up these partitions after this method; it can still commit their offsets."""

    async def on_lost(self, partitions: Collection[TopicPartition]) -> None:
        """Other members may already have these partitions, so a commit would fail.

        Unless overridden, this calls `on_revoked`.
        """
        await self.on_revoked(partitions)
