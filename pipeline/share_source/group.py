"""The group that a query reads from: cluster, topics, settings, membership, positions.

Topics and settings are checked before the query joins the group. So a mistake in them is one clear error, and
the settings hold from the first fetch on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable
from typing import Final
from uuid import UUID

from barnabas.client.cluster.topics import EARLIEST, LATEST, Isolation, Topics
from barnabas.client.errors import (
    BrokerError,
    BrokerUnavailableError,
    ConsumerError,
    GroupAuthorizationError,
    SecurityError,
    TopicAuthorizationError,
    UnknownTopicError,
    UnsupportedBrokerError,
    WrongGroupTypeError,
)
from barnabas.client.share.membership import Membership
from barnabas.client.waiting.patience import Retries
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.share_source.group_admin import RECORD_LOCKS, GroupAdmin, GroupPosition
from barnabas.pipeline.share_source.group_member import GroupMember
from barnabas.pipeline.share_source.metrics import ShareMetrics
from barnabas.pipeline.share_source.settings import ShareSettings
from barnabas.protocol.identity import TopicIdPartition

log = logging.getLogger(__name__)

POSITIONS_TRIES: Final = 50
"""Requests for positions, `RETRY_MS` apart, when a query starts that needs them."""
RETRY_MS: Final = 200

CONNECT_MS: Final = 10_000
"""How long a query tries to reach its cluster when it starts."""

_MS_PER_SECOND: Final = 1000


class ShareGroup:
    """One query's group. `open` it once; `close` it once."""

    def __init__(self, settings: ShareSettings) -> None:
        self._settings = settings
        self._cluster = settings.servers.cluster()
        self._topics = Topics(self._cluster, Retries(give_up_ms=CONNECT_MS))
        self._admin = GroupAdmin(self._cluster, settings.group)
        self.topic_names: dict[UUID, str] = {}
        """The names of the subscribed topics, as they were when the query started."""
        self.member: GroupMember | None = None

    async def open(self) -> None:
        """Finds the topics, and changes the group's settings to the options. Raises `PipelineError`."""
        found = await self._topics.find(self._settings.topics)
        self.topic_names = {topic.topic_id: topic.name for topic in found}
        wanted = {
            "share.auto.offset.reset": self._settings.starting_offsets,
            "share.isolation.level": self._settings.isolation,
            RECORD_LOCKS: None if self._settings.record_locks is None else str(self._settings.record_locks),
        }
        given = {name: value for name, value in wanted.items() if value is not None}
        await self._admin.ensure_settings(given)

    def join(self, member_id: str, metrics: ShareMetrics) -> GroupMember:
        """Joins the group, in the background."""
        membership = Membership(self._settings.group, member_id, self._settings.topics)
        self.member = GroupMember(self._cluster, membership, metrics, renew_locks=self._settings.renew_locks)
        self.member.join()
        return self.member

    async def close(self) -> None:
        """Leaves the group, if a broker can be reached, and closes all connections."""
        try:
            if self.member is not None:
                await self.member.leave()
        finally:
            self._topics.close()
            self._admin.close()
            self._cluster.close()

    def topic_name(self, topic_id: UUID) -> str | None:
        """Its name, also if it was made after the query started."""
        return self._cluster.view.topic_name(topic_id) or self.topic_names.get(topic_id)

    async def positions(
        self, partitions: Iterable[TopicIdPartition]
    ) -> dict[TopicIdPartition, GroupPosition] | None:
        """The group's known positions in these partitions; None if no broker knows them for now."""
        by_name: dict[str, list[TopicIdPartition]] = {}
        for partition in partitions:
            name = self.topic_name(partition.topic_id)
            if name is not None:
                by_name.setdefault(name, []).append(partition)
        if not by_name:
            return {}
        try:
            return await self._admin.positions(by_name)
        except (BrokerUnavailableError, BrokerError) as error:
            log.info("The positions of the group %s are not available: %s", self._settings.group, error)
            return None

    async def known_positions(
        self, partitions: Collection[TopicIdPartition]
    ) -> dict[TopicIdPartition, GroupPosition]:
        """Like `positions`, but repeats the request. Raises `PipelineError` if it never succeeds."""
        for _ in range(POSITIONS_TRIES):
            positions = await self.positions(partitions)
            if positions is not None:
                return positions
            await asyncio.sleep(RETRY_MS / _MS_PER_SECOND)
        raise PipelineError(
            f"group: the start offsets of {self._settings.group} are not available; they are needed to tell "
            "records that were done before from those that are to be read again."
        )

    async def log_start_offsets(
        self, partitions: Iterable[TopicIdPartition]
    ) -> dict[TopicIdPartition, int | None]:
        """The first offset that each log still holds; None if it is unknown. Raises `ConsumerError`."""
        return await self._topics.offsets(list(partitions), EARLIEST, Isolation.READ_UNCOMMITTED)

    async def delivery_count_max(self) -> int | None:
        """The group's delivery limit; None if the broker doesn't report it."""
        return await self._admin.delivery_count_max()

    async def end_offsets(self) -> dict[TopicIdPartition, int]:
        """The ends of the partitions of all topics, exclusive. Raises `ConsumerError`."""
        topics = await self._topics.find(self._settings.topics)
        partitions = [partition for topic in topics for partition in topic.partitions]
        offsets = await self._topics.offsets(partitions, LATEST, Isolation.READ_UNCOMMITTED)
        return {partition: offset or 0 for partition, offset in offsets.items()}


def explained(error: ConsumerError, group: str) -> PipelineError:
    """The error, with the name of the option that it is about."""
    match error:
        case UnknownTopicError():
            reason = f"topics: {error}"
        case TopicAuthorizationError():
            reason = f"topics: there is no right to read them ({error})"
        case WrongGroupTypeError():
            reason = f"group: {group} is no share group ({error})"
        case GroupAuthorizationError():
            reason = f"group: there is no right to read {group} ({error})"
        case UnsupportedBrokerError():
            reason = (
                f"servers: the broker has no share groups; Apache Kafka 4.2 or Barnabas is needed ({error})"
            )
        case BrokerUnavailableError() | SecurityError():
            reason = f"servers: {error}"
        case _:
            reason = f"the group {group} cannot be read: {error}"
    return PipelineError(reason)
