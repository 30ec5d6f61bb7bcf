"""A consumer in a share group, for asyncio (KIP-932): each record is locked and acknowledged individually.

    async with ShareConsumer("127.0.0.1:9092", group="workers", topics=["orders"]) as consumer:
        async for record in consumer:
            async with record:
                await work(record.value)

Works with Barnabas and with Apache Kafka. This file is the public interface, with that of `GroupConsumer`;
`parts` beside it assembles the parts.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import Any, Generic, TypeVar, Unpack, cast, overload

from barnabas.client.errors import AcknowledgeError, MisuseError
from barnabas.client.group.group_consumer import GroupConsumer, topic_names
from barnabas.client.record_content import Bytes, Deserializers, KeyT, ValueT, unchanged
from barnabas.client.share.options import ShareConsumerOptions, settings_of
from barnabas.client.share.parts import ShareParts
from barnabas.client.share.record import ShareRecord
from barnabas.client.share.stopping import StopDeadline
from barnabas.client.share.workers import work
from barnabas.client.topic_partition import TopicPartition

_OnlyValueT = TypeVar("_OnlyValueT")
"""The type of the values if keys stay bytes."""


class ShareConsumer(
    GroupConsumer[ShareRecord[KeyT, ValueT], ShareParts[KeyT, ValueT]], Generic[KeyT, ValueT]
):
    """One member of a share group. Enter it with `async with`, or call `start` and `close`."""

    @overload
    def __init__(
        self: ShareConsumer[Bytes, Bytes],
        bootstrap: str | Sequence[str],
        *,
        group: str,
        topics: Iterable[str],
        **options: Unpack[ShareConsumerOptions],
    ) -> None: ...

    @overload
    def __init__(
        self: ShareConsumer[Bytes, _OnlyValueT],
        bootstrap: str | Sequence[str],
        *,
        group: str,
        topics: Iterable[str],
        value_deserializer: Callable[[Bytes], _OnlyValueT],
        **options: Unpack[ShareConsumerOptions],
    ) -> None: ...

    @overload
    def __init__(
        self,
        bootstrap: str | Sequence[str],
        *,
        group: str,
        topics: Iterable[str],
        key_deserializer: Callable[[Bytes], KeyT],
        value_deserializer: Callable[[Bytes], ValueT],
        **options: Unpack[ShareConsumerOptions],
    ) -> None: ...

    def __init__(
        self,
        bootstrap: str | Sequence[str],
        *,
        group: str,
        topics: Iterable[str],
        key_deserializer: Callable[[Bytes], Any] | None = None,
        value_deserializer: Callable[[Bytes], Any] | None = None,
        **options: Unpack[ShareConsumerOptions],
    ) -> None:
        """`bootstrap` is `host:port`, or several; `options` are those of `Settings`.

        A deserializer gets the bytes, or None for a null. If it raises, the record is unreadable.
        """
        self._settings = settings_of(options)
        self._stop_deadline = StopDeadline(self._settings.stop_timeout_ms)
        super().__init__(bootstrap, group, self._settings)
        self._topics = topic_names(topics)
        self._deserializers = cast(
            "Deserializers[KeyT, ValueT]",
            Deserializers(key_deserializer or unchanged, value_deserializer or unchanged),
        )

    async def close(self, *, timeout_ms: int | None = None) -> None:
        """Send the outstanding acknowledgements, release the other records, and leave the group.

        In implicit mode this also releases the records of the last poll; call `commit` first to accept them.
        After `timeout_ms`, or the option `close_timeout_ms`, the connections are closed without waiting, and
        the broker releases the records that it does not know to be acknowledged. Closing twice does nothing.
        """
        await super().close(timeout_ms=timeout_ms)

    async def run(
        self, handler: Callable[[ShareRecord[KeyT, ValueT]], Awaitable[object]], *, concurrency: int = 16
    ) -> None:
        """Handle records, up to `concurrency` at once, until the consumer is stopped or closed.

        A record is accepted when its handler returns. An exception from the handler releases that record, and
        is logged with its traceback. One of `reject_on` rejects the record, and is logged in one line. Not
        available in implicit mode, which cannot accept single records.
        """
        if self._settings.is_implicit:
            raise MisuseError(
                "In implicit mode a poll accepts all records returned before, so run() cannot be used."
            )
        await work(self, handler, concurrency, self._stop_deadline)

    def stop(self) -> None:
        """Hand out no further record: `run` returns when its handlers have finished, and loops end.

        The consumer leaves the group, and releases the records that wait. Records in work stay locked, and
        are acknowledged as usual. `run` cancels the handlers that have not finished after the option
        `stop_timeout_ms`, or at a second call, which releases their records. Polling raises
        `ConsumerClosedError`. `close` is still necessary.

        Any task may call this, and the handler of a signal: `loop.add_signal_handler(signal.SIGTERM,
        consumer.stop)`. From another thread use `loop.call_soon_threadsafe(consumer.stop)`. Before the start
        and after the close it does nothing.
        """
        self._check_callback()
        if self._parts is not None and not self._is_closing:
            self._stop_deadline.begin()
            self._parts.stop()

    async def commit(self) -> dict[TopicPartition, AcknowledgeError | None]:
        """Wait until the broker has answered all acknowledgements so far.

        Returns the result for each partition since the last commit: the first error, or None if the broker
        accepted everything. In implicit mode this first accepts all records returned before.
        """
        parts = self._entered()
        parts.accept_delivered()
        await parts.leaders.flush()
        return parts.take_outcomes()

    def subscribe(self, topics: Iterable[str]) -> None:
        """Read other topics from now on; records of the former topics may still arrive.

        Raises `ConsumerClosedError` after `stop`.
        """
        names = topic_names(topics)
        self._entered().subscribe(names)

    async def unsubscribe(self) -> None:
        """Read no topic any more, and leave the group until the next `subscribe`.

        Acknowledgements are sent, and records that no poll has returned are released. Records that the
        application holds can still be acknowledged.
        """
        await self._entered().unsubscribe()

    def subscription(self) -> frozenset[str]:
        return self._entered().subscription

    async def beginning_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """By partition, the group's start offset (SPSO): all records before it are done.

        It is -1 if the group has not begun to read the partition. Raises `BrokerError` and
        `BrokerUnavailableError`.
        """
        return await self._entered().start_offsets(partitions)

    async def end_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """By partition, the group's end offset (SPEO), exclusive: the records behind it are new to the group.

        It is -1 if the group has not begun to read the partition. Raises `UnknownTopicError`, `BrokerError`
        and `BrokerUnavailableError`. With another broker than Barnabas it raises `UnsupportedBrokerError`,
        because no response of Kafka's own protocol contains the offset.
        """
        return await self._entered().end_offsets(partitions)

    def _new_parts(self) -> ShareParts[KeyT, ValueT]:
        return ShareParts(self._identity, self._topics, self._settings, self._deserializers)

    def _check_callback(self) -> None:
        if self._parts is not None:
            self._parts.guard.check()
