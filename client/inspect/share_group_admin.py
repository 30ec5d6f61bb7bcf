"""An administrator of one share group, for asyncio, who is no member of it.

    async with ShareGroupAdmin("127.0.0.1:9092", group="workers") as admin:
        positions = await admin.positions()          # start offsets and lag (KIP-1226)
        await admin.release("orders", 0, 17)         # the lock ends, any member can get the record
        await admin.archive("orders", 0, 20, 24)     # never delivered again

Changes of records work with Barnabas only. `ShareBrowser` shows the records.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from barnabas.client.admin.connection import AdminConnection
from barnabas.client.cluster.async_client import AsyncClient
from barnabas.client.cluster.client_options import ClientOptions
from barnabas.client.group.group_consumer import named
from barnabas.client.group.share_positions import SharePosition, fetch_positions
from barnabas.client.inspect.record_requests import RecordRequests
from barnabas.client.topic_partition import TopicPartition
from barnabas.protocol.record_inspection import RecordAction


class ShareGroupAdmin(AsyncClient):
    """Enter it with `async with`, or call `start` and `close`. Any number of tasks may use it.

    Each change concerns one record, or all records of a range of at most 10,000 offsets, both ends inclusive.
    It returns the number of records. All of them change, or none: `BrokerError` with INVALID_RECORD_STATE
    names the first record that cannot be changed. After `BrokerUnavailableError`, look at the records before
    you repeat the change.
    """

    def __init__(
        self, bootstrap: str | Sequence[str], *, group: str, **options: Unpack[ClientOptions]
    ) -> None:
        """`bootstrap` is `host:port`, or several; `options` are those of `ClientSettings`."""
        self._connection = AdminConnection(bootstrap, **options)
        self._group_id = named("group", group)
        self._requests = RecordRequests(self._connection, self._group_id)

    async def start(self) -> None:
        await self._connection.start()

    async def close(self) -> None:
        self._requests.close()
        await self._connection.close()

    async def positions(self) -> dict[TopicPartition, SharePosition]:
        """By partition, the position of the group in all partitions that it reads; empty for an unknown
        group.

        Raises `BrokerError`, and `BrokerUnavailableError` if a temporary error lasts for
        `connect_timeout_ms`.
        """
        return await fetch_positions(self._connection.coordinators, self._group_id)

    async def release(
        self, topic: str, partition: int, first_offset: int, last_offset: int | None = None
    ) -> int:
        """End the locks: the records are available immediately. The delivery counts stay, and a record at the
        delivery limit can be delivered once more.
        """
        return await self._alter(RecordAction.RELEASE, topic, partition, first_offset, last_offset)

    async def archive(
        self, topic: str, partition: int, first_offset: int, last_offset: int | None = None
    ) -> int:
        """Never deliver the records again. They may be available or held."""
        return await self._alter(RecordAction.ARCHIVE, topic, partition, first_offset, last_offset)

    async def dead_letter(
        self, topic: str, partition: int, first_offset: int, last_offset: int | None = None
    ) -> int:
        """Send the records to the group's dead-letter topic, as if they were rejected."""
        return await self._alter(RecordAction.DEAD_LETTER, topic, partition, first_offset, last_offset)

    async def _alter(
        self, action: RecordAction, topic: str, partition: int, first_offset: int, last_offset: int | None
    ) -> int:
        last = first_offset if last_offset is None else last_offset
        return await self._requests.alter(TopicPartition(topic, partition), action, first_offset, last)
