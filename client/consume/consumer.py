"""A consumer in a consumer group, for asyncio (KIP-848): each partition has one reader, and an offset.

    async with Consumer("127.0.0.1:9092", group="reports", topics=["orders"]) as consumer:
        async for record in consumer:
            await work(record.value)

Works with Barnabas and with Apache Kafka. This file is the public interface, with that of `GroupConsumer`;
`parts` beside it assembles the parts.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Generic, TypeVar, Unpack, cast, overload

from barnabas.client.cluster.topics import EARLIEST, LATEST
from barnabas.client.consume.consumer_membership import Subscription
from barnabas.client.consume.consumer_options import ConsumerOptions, consumer_settings_of
from barnabas.client.consume.consumer_record import ConsumerRecord
from barnabas.client.consume.individual_commits import GivenRanges
from barnabas.client.consume.parts import ConsumerParts
from barnabas.client.consume.rebalance_listener import RebalanceListener
from barnabas.client.errors import ConsumerClosedError, MisuseError
from barnabas.client.group.group_consumer import GroupConsumer, named, topic_names
from barnabas.client.group.offsets import CommittedOffset, GroupMetadata, with_metadata
from barnabas.client.group.ranges import TakenRanges
from barnabas.client.record_content import Bytes, Deserializers, KeyT, ValueT, unchanged
from barnabas.client.topic_partition import TopicPartition

_OnlyValueT = TypeVar("_OnlyValueT")
"""The type of the values if keys stay bytes."""


class Consumer(
    GroupConsumer[ConsumerRecord[KeyT, ValueT], ConsumerParts[KeyT, ValueT]], Generic[KeyT, ValueT]
):
    """One member of a consumer group. Enter it with `async with`, or call `start` and `close`.

    One task at a time may poll. The application's processing of a record ends when it asks for the next
    records; only then the record counts as processed.
    """

    @overload
    def __init__(
        self: Consumer[Bytes, Bytes],
        bootstrap: str | Sequence[str],
        *,
        group: str,
        topics: Iterable[str] = (),
        pattern: str | None = None,
        listener: RebalanceListener | None = None,
        **options: Unpack[ConsumerOptions],
    ) -> None: ...

    @overload
    def __init__(
        self: Consumer[Bytes, _OnlyValueT],
        bootstrap: str | Sequence[str],
        *,
        group: str,
        topics: Iterable[str] = (),
        pattern: str | None = None,
        listener: RebalanceListener | None = None,
        value_deserializer: Callable[[Bytes], _OnlyValueT],
        **options: Unpack[ConsumerOptions],
    ) -> None: ...

    @overload
    def __init__(
        self,
        bootstrap: str | Sequence[str],
        *,
        group: str,
        topics: Iterable[str] = (),
        pattern: str | None = None,
        listener: RebalanceListener | None = None,
        key_deserializer: Callable[[Bytes], KeyT],
        value_deserializer: Callable[[Bytes], ValueT],
        **options: Unpack[ConsumerOptions],
    ) -> None: ...

    def __init__(
        self,
        bootstrap: str | Sequence[str],
        *,
        group: str,
        topics: Iterable[str] = (),
        pattern: str | None = None,
        listener: RebalanceListener | None = None,
        key_deserializer: Callable[[Bytes], Any] | None = None,
        value_deserializer: Callable[[Bytes], Any] | None = None,
        **options: Unpack[ConsumerOptions],
    ) -> None:
        """`bootstrap` is `host:port`, or several; `options` are those of `ConsumerSettings`.

        The subscription is `topics`, or a `pattern` in RE2 syntax that the broker evaluates; without both,
        call `subscribe`. A deserializer gets the bytes, or None for a null. If it raises, a poll raises
        `UnreadableRecordError`.
        """
        self._settings = consumer_settings_of(options)
        super().__init__(bootstrap, group, self._settings)
        self._first_subscription = _subscription(topics, pattern) or Subscription()
        self._first_listener = listener
        self._deserializers: Deserializers[KeyT, ValueT] | None = None
        if key_deserializer is not None or value_deserializer is not None:
            self._deserializers = cast(
                "Deserializers[KeyT, ValueT]",
                Deserializers(key_deserializer or unchanged, value_deserializer or unchanged),
            )

    async def close(self, *, timeout_ms: int | None = None) -> None:
        """Commit all delivered records (if automatic), call `on_revoked`, and leave the group.

        A static member stays in the group until its session ends. After `timeout_ms`, or the option
        `close_timeout_ms`, the connections are closed without waiting. Closing twice does nothing.
        """
        await super().close(timeout_ms=timeout_ms)

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Closes the consumer. After an exception the records of the last poll are not committed."""
        if error is not None and self._parts is not None:
            self._parts.note_failure()
        await self.close()

    async def __aiter__(self) -> AsyncIterator[ConsumerRecord[KeyT, ValueT]]:
        """Yields single records until the consumer is stopped or closed; see `poll`."""
        while True:
            try:
                record = self._entered().next_decoded()
                if record is None:
                    (record,) = await self._next(1)
            except ConsumerClosedError:
                return
            yield record

    def stop(self) -> None:
        """Return no further record: loops end when they ask for the next one, and polls raise
        `ConsumerClosedError`.

        A loop that ends has processed its last record, which the close commits (if automatic). Until the
        close the consumer keeps its partitions, and can commit, but no longer than `max_poll_interval_ms`
        after its last poll.

        Any task may call this, and the handler of a signal: `loop.add_signal_handler(signal.SIGTERM,
        consumer.stop)`. From another thread use `loop.call_soon_threadsafe(consumer.stop)`. Before the start
        and after the close it does nothing.
        """
        if self._parts is not None:
            self._parts.stop()

    def subscribe(
        self,
        topics: Iterable[str] = (),
        *,
        pattern: str | None = None,
        listener: RebalanceListener | None = None,
    ) -> None:
        """Read these topics, or those whose name matches the pattern, from now on.

        A listener replaces the former one. Raises `MisuseError` for no topic, or both.
        """
        parts = self._entered()
        subscription = _subscription(topics, pattern)
        if subscription is None:
            raise MisuseError("Subscribe to topics, or to a pattern.")
        parts.subscribe(subscription, listener)

    async def unsubscribe(self) -> None:
        """Give up all partitions as in a rebalance, and leave the group until the next `subscribe`."""
        await self._entered().unsubscribe()

    def subscription(self) -> frozenset[str]:
        """The topics that the consumer has subscribed to by name; empty for a pattern."""
        return frozenset(self._entered().membership.subscription.topics)

    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that this consumer reads now."""
        return self._entered().assignment.names

    def group_metadata(self) -> GroupMetadata:
        """This member, for `Producer.send_offsets_to_transaction`."""
        return self._entered().commits.group_metadata

    async def commit(self, offsets: Mapping[TopicPartition, int | CommittedOffset] | None = None) -> None:
        """Commit these offsets, or those of all records that were delivered, and wait for the answer.

        An offset is that of the next record to read. Raises `CommitFailedError` if this consumer is no longer
        the member that has the partitions, `BrokerError`, and `BrokerUnavailableError`.

        With individual commits: commits the processed records, and all that were delivered except those in
        `async with` blocks. Offsets raise `MisuseError`; use `commit_ranges`.
        """
        await self._entered().commit(None if offsets is None else with_metadata(offsets))

    async def commit_ranges(self, ranges: GivenRanges) -> None:
        """Commit the records of these ranges, with individual commits, and wait for the answer.

        A range is its first and its last offset, both inclusive. In a partition that this consumer shares,
        only records that were delivered to it are committed. In a whole partition all offsets of the ranges
        are. Raises `MisuseError`, `NoOffsetError`, and the errors of `commit`.
        """
        await self._entered().commit_ranges(ranges)

    def take_ranges(self, partitions: Collection[TopicPartition] | None = None) -> TakenRanges:
        """The offsets to commit, with individual commits, for `Producer.send_offsets_to_transaction`.

        They are those that `commit` would commit. From now on they count as committed; if the transaction is
        aborted, call `seek_to_committed`. If a partition is given up meanwhile, they are refused. Raises
        `MisuseError`.
        """
        return self._entered().take_ranges(partitions)

    async def committed(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, CommittedOffset | None]:
        """The group's committed offsets, None for a partition without one; waits for open transactions.

        Raises `BrokerError` and `BrokerUnavailableError`.
        """
        return await self._entered().committed(partitions)

    async def position(self, partition: TopicPartition) -> int:
        """The offset of the next record of a partition; waits until it is known.

        Raises `MisuseError` if the partition is not assigned, and `NoOffsetError`.
        """
        parts = self._entered()
        return await parts.positions.wait(parts.assignment.named(partition))

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Continue at this offset. Raises `MisuseError` if the partition is not assigned."""
        if offset < 0:
            raise MisuseError(f"The offset is {offset}; it must be at least 0.")
        parts = self._entered()
        parts.assignment.named(partition).seek(offset)
        parts.look_again()

    def seek_to_beginning(self, partitions: Collection[TopicPartition] | None = None) -> None:
        """Continue at the first record of these partitions, or of all that are assigned."""
        self._reset(partitions, EARLIEST)

    def seek_to_end(self, partitions: Collection[TopicPartition] | None = None) -> None:
        """Continue behind the last record of these partitions, or of all that are assigned."""
        self._reset(partitions, LATEST)

    def seek_to_committed(self, partitions: Collection[TopicPartition] | None = None) -> None:
        """Continue at the first record that the group has not committed, in these partitions or in all.

        After a failure or an aborted transaction this delivers the records again that were not committed.
        """
        self._entered().go_back(partitions)

    def pause(self, partitions: Collection[TopicPartition]) -> None:
        """Deliver no records of these partitions until `resume`; the pause ends with the assignment."""
        for partition in self._entered().assignment.select(partitions):
            partition.is_paused = True

    def resume(self, partitions: Collection[TopicPartition]) -> None:
        """Deliver records of these partitions again."""
        parts = self._entered()
        for partition in parts.assignment.select(partitions):
            partition.is_paused = False
        parts.look_again()

    def paused(self) -> frozenset[TopicPartition]:
        """The assigned partitions that are paused."""
        return frozenset(partition.name for partition in self._entered().assignment if partition.is_paused)

    async def beginning_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """By partition, the offset of the first record.

        Raises `UnknownTopicError`, `BrokerError` and `BrokerUnavailableError`.
        """
        return await self._entered().offsets(partitions, EARLIEST)

    async def end_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """By partition, the offset behind the last record that this consumer can read.

        With `isolation_level="read_committed"` that is the start of the first open transaction. Raises the
        errors of `beginning_offsets`.
        """
        return await self._entered().offsets(partitions, LATEST, self._settings.isolation)

    def _reset(self, partitions: Collection[TopicPartition] | None, reset_to: int) -> None:
        parts = self._entered()
        for partition in parts.assignment.select(partitions):
            partition.reset(reset_to)
        parts.look_again()

    def _new_parts(self) -> ConsumerParts[KeyT, ValueT]:
        return ConsumerParts(
            self._identity,
            self._first_subscription,
            self._first_listener,
            self._settings,
            self._deserializers,
        )


def _subscription(topics: Iterable[str], pattern: str | None) -> Subscription | None:
    """The subscription; None if there is none. Raises `MisuseError` for topics and a pattern."""
    names = list(topics) if not isinstance(topics, str) else topics
    if pattern is not None:
        if names:
            raise MisuseError("Subscribe to topics or to a pattern, not to both.")
        return Subscription(pattern=named("pattern", pattern))
    return Subscription(tuple(dict.fromkeys(topic_names(names)))) if names else None
