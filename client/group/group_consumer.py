"""The interface that `Consumer` and `ShareConsumer` have in common."""

from __future__ import annotations

import asyncio
import base64
import uuid
from abc import abstractmethod
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any, Generic, TypeVar

from barnabas.client.cluster.async_client import AsyncClient
from barnabas.client.cluster.topics import Topic
from barnabas.client.errors import ConsumerClosedError, MisuseError
from barnabas.client.group.group_options import GroupSettings
from barnabas.client.group.group_parts import GroupParts, Identity, RecordT
from barnabas.client.network.address import parse_bootstrap
from barnabas.client.topic_partition import TopicPartition

PartsT = TypeVar("PartsT", bound=GroupParts[Any])


class GroupConsumer(AsyncClient, Generic[RecordT, PartsT]):
    """One member of a group. Enter it with `async with`, or call `start` and `close`."""

    def __init__(self, bootstrap: str | Sequence[str], group: str, settings: GroupSettings) -> None:
        self._group_settings = settings
        self._identity = Identity(
            parse_bootstrap(bootstrap), named("group", group), settings.member_id or _new_member_id()
        )
        self._parts: PartsT | None = None
        self._is_closing = False
        """Polls end; callbacks can still use the consumer until it is closed."""
        self._is_closed = False

    @property
    def member_id(self) -> str:
        """The id by which the group knows this consumer."""
        return self._identity.member_id

    async def start(self) -> None:
        """Find the cluster, and join the group in the background.

        Raises `BrokerUnavailableError` if no broker answers within `connect_timeout_ms`, and `SecurityError`
        immediately if TLS or SASL fail.
        """
        if self._parts is not None or self._is_closed:
            raise MisuseError("A consumer can be started only once.")
        self._parts = self._new_parts()
        try:
            await self._parts.start()
        except BaseException:
            self._is_closed = True
            raise

    async def close(self, *, timeout_ms: int | None = None) -> None:
        """Leave the group and end all tasks; closing twice does nothing.

        After `timeout_ms`, or the option `close_timeout_ms`, the connections are closed without waiting.
        """
        self._check_callback()
        if self._is_closing:
            return
        self._is_closing = True
        try:
            if self._parts is not None:
                settings = self._group_settings
                await self._parts.close(settings.close_timeout_ms if timeout_ms is None else timeout_ms)
        finally:
            self._is_closed = True
            self._parts = None

    async def poll(
        self,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 (no records in time are no error)
        max_records: int | None = None,
    ) -> list[RecordT]:
        """Wait for a record, then return at most `max_records` of those that have arrived.

        `max_records` defaults to the option of this name. `timeout` is in seconds, None waits for ever; after
        it the list is empty. The call means that the application has processed all records returned before.
        Raises `ConsumerClosedError`, also after `stop`; `WakeupError`; and `BrokerError` after a lasting
        error.
        """
        try:
            async with asyncio.timeout(timeout):
                return await self._next(max_records)
        except TimeoutError:
            return []

    async def __aiter__(self) -> AsyncIterator[RecordT]:
        """Yields single records until the consumer is stopped or closed; see `poll`."""
        while True:
            try:
                (record,) = await self._next(1)
            except ConsumerClosedError:
                return
            yield record

    async def batches(self, *, max_records: int | None = None) -> AsyncIterator[list[RecordT]]:
        """Yields the results of `poll` until the consumer is stopped or closed."""
        while True:
            try:
                records = await self._next(max_records)
            except ConsumerClosedError:
                return
            yield records

    def wakeup(self) -> None:
        """End the poll under way with `WakeupError`, or else the next poll.

        Any task may call this; from another thread use `loop.call_soon_threadsafe(consumer.wakeup)`.
        """
        if self._parts is not None:
            self._parts.wakeup()

    @abstractmethod
    def subscription(self) -> frozenset[str]:
        """The topics that the consumer has subscribed to by name."""

    def metrics(self) -> dict[str, float]:
        """The counters of this consumer; the guide lists their names."""
        return self._entered().metrics()

    async def list_topics(self) -> list[Topic]:
        """All topics that the user may see, sorted by name, without internal ones."""
        return await self._entered().topics.find_all()

    async def partitions_for(self, topic: str) -> list[TopicPartition]:
        """The partitions of a topic. Raises `UnknownTopicError`."""
        (found,) = await self._entered().topics.find([topic])
        return [TopicPartition(topic, index) for index in range(found.partition_count)]

    @abstractmethod
    def _new_parts(self) -> PartsT: ...

    def _check_callback(self) -> None:
        """Raises `MisuseError` inside a callback that may not call the consumer."""

    async def _next(self, max_records: int | None) -> list[RecordT]:
        records: list[RecordT] = await self._entered().next(max_records or self._group_settings.max_records)
        return records

    def _entered(self) -> PartsT:
        self._check_callback()
        if self._is_closed:
            raise ConsumerClosedError("The consumer is closed.")
        if self._parts is None:
            raise MisuseError("The consumer is not started.")
        return self._parts


def named(kind: str, name: str) -> str:
    """The name. Raises `MisuseError` if it is empty."""
    if not name:
        raise MisuseError(f"A {kind} needs a name.")
    return name


def topic_names(topics: Iterable[str]) -> list[str]:
    """The names, at least one. Raises `MisuseError`."""
    if isinstance(topics, str):
        raise MisuseError("The topics must be a list of names.")
    names = [named("topic", topic) for topic in topics]
    if not names:
        raise MisuseError("The list of topics is empty.")
    return names


def _new_member_id() -> str:
    """A random UUID in 22 characters, the same form as in Kafka's clients."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
