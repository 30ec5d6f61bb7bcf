"""A consumer in a share group, for asyncio (KIP-932): each record is locked and acknowledged individually.

    async with ShareConsumer("127.0.0.1:9092", group="workers", topics=["orders"]) as consumer:
        async for record in consumer:
            async with record:
                await work(record.value)

Works with Barnabas and with Apache Kafka. This file is the public interface; `consumer_parts` assembles the
parts behind it.
"""

from __future__ import annotations

import asyncio
import base64
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, Unpack, cast, overload

from barnabas.client.address import parse_bootstrap
from barnabas.client.consumer_parts import ConsumerParts, Identity, TopicPartition
from barnabas.client.errors import AcknowledgeError, ConsumerClosedError, MisuseError
from barnabas.client.options import ShareConsumerOptions, settings_of
from barnabas.client.record import KeyT, ShareRecord, ValueT
from barnabas.client.record_reader import Deserializers
from barnabas.client.workers import work

Bytes = bytes | None

_OnlyValueT = TypeVar("_OnlyValueT")
"""The type of the values if keys stay bytes."""


class ShareConsumer(Generic[KeyT, ValueT]):
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
        self._deserializers = cast(
            "Deserializers[KeyT, ValueT]",
            Deserializers(key_deserializer or _as_it_is, value_deserializer or _as_it_is),
        )
        self._identity = Identity(
            parse_bootstrap(bootstrap),
            _named("group", group),
            self._settings.member_id or _new_member_id(),
            [_named("topic", topic) for topic in _one_or_more(topics)],
        )
        self._parts: ConsumerParts[KeyT, ValueT] | None = None
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
        self._parts = ConsumerParts(self._identity, self._settings, self._deserializers)
        try:
            await self._parts.start()
        except BaseException:
            self._is_closed = True
            raise

    async def close(self, *, timeout_ms: int | None = None) -> None:
        """Send the outstanding acknowledgements, release the other records, and leave the group.

        In implicit mode this also releases the records of the last poll; call `commit` first to accept them.
        After `timeout_ms`, or the option `close_timeout_ms`, the connections are closed without waiting, and
        the broker releases the records that it does not know to be acknowledged. Closing twice does nothing.
        """
        self._is_closed = True
        parts, self._parts = self._parts, None
        if parts is not None:
            await parts.close(self._settings.close_timeout_ms if timeout_ms is None else timeout_ms)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def poll(
        self,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 (no records in time are no error)
        max_records: int | None = None,
    ) -> list[ShareRecord[KeyT, ValueT]]:
        """Wait for a record, then return at most `max_records` of those that have arrived.

        `max_records` defaults to the option of this name. `timeout` is in seconds, None waits for ever; after
        it the list is empty. In implicit mode this first accepts all records returned before. Raises
        `ConsumerClosedError`, and `BrokerError` after a lasting error.
        """
        try:
            async with asyncio.timeout(timeout):
                return await self._next(max_records or self._settings.max_records)
        except TimeoutError:
            return []

    async def __aiter__(self) -> AsyncIterator[ShareRecord[KeyT, ValueT]]:
        """Yields single records until the consumer is closed; see `poll`."""
        while True:
            try:
                (record,) = await self._next(1)
            except ConsumerClosedError:
                return
            yield record

    async def batches(
        self, *, max_records: int | None = None
    ) -> AsyncIterator[list[ShareRecord[KeyT, ValueT]]]:
        """Yields the results of `poll` until the consumer is closed."""
        while True:
            try:
                records = await self._next(max_records or self._settings.max_records)
            except ConsumerClosedError:
                return
            yield records

    async def run(
        self, handler: Callable[[ShareRecord[KeyT, ValueT]], Awaitable[object]], *, concurrency: int = 16
    ) -> None:
        """Handle records, up to `concurrency` at once, until the consumer is closed.

        A record is accepted when its handler returns. An exception from the handler is logged, and rejects or
        releases that record, see `reject_on`. Not available in implicit mode, which cannot accept single
        records.
        """
        if self._settings.is_implicit:
            raise MisuseError(
                "In implicit mode a poll accepts all records returned before, so run() cannot be used."
            )
        await work(self, handler, concurrency)

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
        """Read other topics from now on; records of the former topics may still arrive."""
        names = [_named("topic", topic) for topic in _one_or_more(topics)]
        self._entered().subscribe(names)

    async def _next(self, count_max: int) -> list[ShareRecord[KeyT, ValueT]]:
        parts = self._entered()
        parts.accept_delivered()
        while not (records := parts.intake.take(count_max)):
            await parts.intake.wait(count_max)
        parts.note_delivered(records)
        return records

    def _entered(self) -> ConsumerParts[KeyT, ValueT]:
        if self._is_closed:
            raise ConsumerClosedError("The consumer is closed.")
        if self._parts is None:
            raise MisuseError("The consumer is not started.")
        return self._parts


def _named(kind: str, name: str) -> str:
    if not name:
        raise MisuseError(f"A {kind} needs a name.")
    return name


def _one_or_more(topics: Iterable[str]) -> list[str]:
    if isinstance(topics, str):
        raise MisuseError("The topics must be a list of names.")
    names = list(topics)
    if not names:
        raise MisuseError("The list of topics is empty.")
    return names


def _as_it_is(data: Bytes) -> Bytes:
    return data


def _new_member_id() -> str:
    """A random UUID in 22 characters, the same form as in Kafka's clients."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
