"""A consumer in a share group, for asyncio (KIP-932): records one by one, each locked, each acknowledged.

    async with ShareConsumer("127.0.0.1:9092", group="workers", topics=["orders"]) as consumer:
        async for record in consumer:
            async with record:
                await work(record.value)

It works against Barnabas and Apache Kafka alike. This file is the front; `consumer_parts` puts together what
stands behind it.
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
"""The type of the values where keys stay bytes."""


class ShareConsumer(Generic[KeyT, ValueT]):
    """One member of a share group. To be entered with `async with`, or started and closed by hand."""

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

        A deserializer gets the bytes, or None for a null. What it raises makes the record unreadable.
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
        """By which the group knows this consumer."""
        return self._identity.member_id

    async def start(self) -> None:
        """Find the cluster, and join the group in the background.

        Raises `BrokerUnavailableError` if no broker answers within `connect_timeout_ms`, and `SecurityError`
        at once if TLS or SASL fail.
        """
        if self._parts is not None or self._is_closed:
            raise MisuseError("A consumer is started once.")
        self._parts = ConsumerParts(self._identity, self._settings, self._deserializers)
        try:
            await self._parts.start()
        except BaseException:
            self._is_closed = True
            raise

    async def close(self, *, timeout_ms: int | None = None) -> None:
        """Tell the broker what was acknowledged, release the rest, and leave the group.

        In implicit mode the records of the last poll are released, too: accept them with `commit` before.
        After `timeout_ms`, or the option `close_timeout_ms`, the connections are just dropped, and the broker
        releases what it doesn't know to be done. Closing twice does nothing.
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
        """The records that are there, `max_records` at most (the option's, unless given); waits for one.

        `timeout` is in seconds, None waits for ever; after it the list is empty. In implicit mode this
        accepts whatever was returned before. Raises `ConsumerClosedError`, and `BrokerError` once the broker
        has refused for good.
        """
        try:
            async with asyncio.timeout(timeout):
                return await self._next(max_records or self._settings.max_records)
        except TimeoutError:
            return []

    async def __aiter__(self) -> AsyncIterator[ShareRecord[KeyT, ValueT]]:
        """Record by record, until the consumer is closed; see `poll`."""
        while True:
            try:
                (record,) = await self._next(1)
            except ConsumerClosedError:
                return
            yield record

    async def batches(
        self, *, max_records: int | None = None
    ) -> AsyncIterator[list[ShareRecord[KeyT, ValueT]]]:
        """Poll by poll, until the consumer is closed."""
        while True:
            try:
                records = await self._next(max_records or self._settings.max_records)
            except ConsumerClosedError:
                return
            yield records

    async def run(
        self, handler: Callable[[ShareRecord[KeyT, ValueT]], Awaitable[object]], *, concurrency: int = 16
    ) -> None:
        """Handle record after record, so many at once, until the consumer is closed.

        A record is accepted when its handler returns. An exception out of the handler is logged, and rejects
        or releases that record, see `reject_on`. Not in implicit mode, which knows no single records.
        """
        if self._settings.is_implicit:
            raise MisuseError("In implicit mode a poll accepts what all others have returned.")
        await work(self, handler, concurrency)

    async def commit(self) -> dict[TopicPartition, AcknowledgeError | None]:
        """Wait until the broker has answered all acknowledgements so far.

        Returns how each partition took what was acknowledged since the last commit: the first error, or None
        if all went well. In implicit mode this accepts whatever was returned before.
        """
        parts = self._entered()
        parts.accept_delivered()
        await parts.leaders.flush()
        return parts.take_outcomes()

    def subscribe(self, topics: Iterable[str]) -> None:
        """Read other topics from now on; records of the former ones may still come."""
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


def _named(what: str, name: str) -> str:
    if not name:
        raise MisuseError(f"A {what} needs a name.")
    return name


def _one_or_more(topics: Iterable[str]) -> list[str]:
    if isinstance(topics, str):
        raise MisuseError("The topics are a list of names.")
    names = list(topics)
    if not names:
        raise MisuseError("There is no topic to read.")
    return names


def _as_it_is(data: Bytes) -> Bytes:
    return data


def _new_member_id() -> str:
    """As Kafka's clients make theirs: a random UUID in 22 characters."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
