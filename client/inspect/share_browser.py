"""A reader of a share group's records and their states, for asyncio. It acquires nothing.

    async with ShareBrowser("127.0.0.1:9092", group="workers") as browser:
        async for record in browser.records("orders", 0):
            print(record.offset, record.group.state.name, record.value)

It has a position of its own, joins no group and changes nothing, so the operation DESCRIBE on the group is
enough.
Works with Barnabas only. `ShareGroupAdmin` changes records; `inspect` has the parts behind both.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Sequence
from typing import Final, Unpack

from barnabas.client.admin.connection import AdminConnection
from barnabas.client.cluster.async_client import AsyncClient
from barnabas.client.cluster.client_options import ClientOptions
from barnabas.client.consume.topic_reader import ReadSettings, TopicReader
from barnabas.client.group.group_consumer import named
from barnabas.client.group.share_positions import fetch_known_partitions
from barnabas.client.inspect.browsing import BrowsedRecord, browse
from barnabas.client.inspect.record_range import GroupProgress, RecordRange
from barnabas.client.inspect.record_requests import PAGE_RANGES, RecordRequests
from barnabas.client.topic_partition import TopicPartition
from barnabas.protocol.record_history import HistoryStep
from barnabas.protocol.record_inspection import FROM_START_OFFSET, NO_NEXT_PAGE, DescribedState

READ_BYTES: Final = 1024 * 1024
"""The most that one fetch of records asks for."""


class ShareBrowser(AsyncClient):
    """Enter it with `async with`, or call `start` and `close`. Any number of tasks may use it."""

    def __init__(
        self, bootstrap: str | Sequence[str], *, group: str, **options: Unpack[ClientOptions]
    ) -> None:
        """`bootstrap` is `host:port`, or several; `options` are those of `ClientSettings`."""
        self._connection = AdminConnection(bootstrap, **options)
        self._group_id = named("group", group)
        self._requests = RecordRequests(self._connection, self._group_id)
        settings = ReadSettings(fetch_bytes=READ_BYTES, retries=self._connection.retries)
        self._reader = TopicReader(self._connection.cluster, settings)

    async def start(self) -> None:
        await self._connection.start()

    async def close(self) -> None:
        self._reader.close()
        self._requests.close()
        await self._connection.close()

    async def partitions(self) -> list[TopicPartition]:
        """The partitions that the group reads, sorted; none if there is no such group."""
        return await fetch_known_partitions(self._connection.coordinators, self._group_id)

    async def progress(self, topic: str, partition: int) -> GroupProgress:
        """The offsets of the group. Raises the errors of `ranges`."""
        page = await self._requests.page(TopicPartition(topic, partition), FROM_START_OFFSET, 1)
        return page.progress

    async def ranges(
        self,
        topic: str,
        partition: int,
        *,
        first_offset: int | None = None,
        last_offset: int | None = None,
        states: Collection[DescribedState] = (),
    ) -> AsyncGenerator[RecordRange]:
        """The ranges of records that are alike, ascending: from the group's start offset, or from
        `first_offset`, to `last_offset` (inclusive) or the end; those in one of the `states`, or all.

        Each page of ranges is of one moment. Raises `UnknownTopicError`, `MisuseError`, `BrokerError` (such
        as RESOURCE_NOT_FOUND if the group does not read the partition), `UnsupportedBrokerError` and
        `BrokerUnavailableError`.
        """
        pages = self._pages(TopicPartition(topic, partition), first_offset, last_offset, states)
        async for page in pages:
            for record_range in page:
                yield record_range

    async def records(
        self,
        topic: str,
        partition: int,
        *,
        first_offset: int | None = None,
        last_offset: int | None = None,
        states: Collection[DescribedState] = (),
    ) -> AsyncGenerator[BrowsedRecord]:
        """The records of the `ranges` with these arguments, each with its state. Raises their errors.

        All records of the log are read, those of open and aborted transactions as well.
        """
        name = TopicPartition(topic, partition)
        async for page in self._pages(name, first_offset, last_offset, states):
            found = await self._requests.find(name)
            async for record in browse(self._reader, found, page):
                yield record

    async def history(self, topic: str, partition: int, offset: int) -> list[HistoryStep] | None:
        """The steps in the history of one record, oldest first, from all control records of the log; None if
        the broker keeps no histories (`share.state.store=topic`).

        A first delivery has no step of its own. A checkpoint is a step even if it changes nothing. Raises the
        errors of `ranges`.
        """
        return await self._requests.history(TopicPartition(topic, partition), offset)

    async def _pages(
        self,
        partition: TopicPartition,
        first_offset: int | None,
        last_offset: int | None,
        states: Collection[DescribedState],
    ) -> AsyncGenerator[list[RecordRange]]:
        offset = FROM_START_OFFSET if first_offset is None else first_offset
        while True:
            page = await self._requests.page(partition, offset, PAGE_RANGES)
            yield [
                record_range
                if last_offset is None
                else record_range._replace(last_offset=min(record_range.last_offset, last_offset))
                for record_range in page.ranges
                if (last_offset is None or record_range.first_offset <= last_offset)
                and (not states or record_range.state in states)
            ]
            offset = page.next_offset
            if offset == NO_NEXT_PAGE or (last_offset is not None and offset > last_offset):
                return
