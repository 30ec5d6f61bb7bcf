"""The batches of one partition in one fetch, decoded batch by batch as the application polls.

Left out are control batches, batches of aborted transactions (KIP-98), and records before the position, which
a batch may also hold. With individual commits, a filter leaves out records that are committed, or that belong
to other members. A record that cannot be read ends the slice with an error, after the records before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, Generic, cast

from barnabas.client.consume.consumer_record import ConsumerRecord, IndividualRecord
from barnabas.client.consume.record_filter import RecordFilter
from barnabas.client.errors import UnreadableRecordError
from barnabas.client.record_content import Deserializers, KeyT, ValueT
from barnabas.client.topic_partition import TopicPartition
from barnabas.protocol.aborted_transactions import AbortedTransactions
from barnabas.protocol.batch_body import batch_body
from barnabas.protocol.record_batch import BatchHeader, iterate_headers
from barnabas.protocol.records import RecordFields, iterate_fields
from barnabas.protocol.varint import RecordFormatError

# Half as long as a call of the class, which would pass each field by itself.
_new_record: Final = cast(
    "Callable[[object, object], object]",
    tuple.__new__,  # pyright: ignore[reportUnknownMemberType]
)


class FetchedSlice(Generic[KeyT, ValueT]):
    """Call `take` until `is_exhausted`."""

    __slots__ = (
        "_aborted",
        "_decoded",
        "_deserializers",
        "_error",
        "_headers",
        "_name",
        "_next_offset",
        "_record_filter",
        "_records",
        "end_offset",
        "is_exhausted",
        "size_bytes",
    )

    def __init__(
        self,
        name: TopicPartition,
        records: memoryview,
        aborted: Sequence[tuple[int, int]] | None,
        deserializers: Deserializers[KeyT, ValueT] | None,
        record_filter: RecordFilter | None = None,
    ) -> None:
        """`records` are whole batches. `aborted` are the (producer id, first offset) of aborted transactions,
        None if their records are wanted. Without deserializers, keys and values are bytes. The filter is for
        individual commits."""
        self.size_bytes = len(records)
        self.is_exhausted = False
        self.end_offset = 0
        """The position at the end of the slice is not before this offset."""
        self._name = name
        self._records = records
        self._aborted = None if aborted is None else AbortedTransactions.from_fetch(aborted)
        self._deserializers = deserializers
        self._record_filter = record_filter
        self._headers = iterate_headers(records)
        self._decoded: list[ConsumerRecord[KeyT, ValueT]] = []
        """The rest of the current batch, the next record last."""
        self._next_offset = 0
        """The offset after the current batch."""
        self._error: UnreadableRecordError | None = None

    def take(self, position: int, count_max: int) -> tuple[list[ConsumerRecord[KeyT, ValueT]], int]:
        """At most `count_max` records from `position` on, and the position after them.

        Raises `UnreadableRecordError` if there are none before a record that cannot be read.
        """
        taken: list[ConsumerRecord[KeyT, ValueT]] = []
        while True:
            if decoded := self._decoded:
                wanted = count_max - len(taken)
                taken += decoded[: -wanted - 1 : -1]
                del decoded[-wanted:]
                position = decoded[-1].offset if decoded else self._after(taken[-1].offset)
                if len(taken) == count_max:
                    return taken, position
            if self._error is not None:
                if not taken:
                    raise self._error
                return taken, position
            try:
                following = next(self._headers, None)
                if following is None:
                    self.is_exhausted = True
                    return taken, max(position, self.end_offset)
                position = self._load(*following, position)
            except RecordFormatError as error:
                self._error = self._unreadable(max(position, self._next_offset), str(error))

    def take_decoded(self) -> tuple[ConsumerRecord[KeyT, ValueT], int] | None:
        """The next record and the position after it, if it is decoded already."""
        decoded = self._decoded
        if not decoded:
            return None
        record = decoded.pop()
        return record, decoded[-1].offset if decoded else self._after(record.offset)

    def _after(self, offset: int) -> int:
        """The position after the last decoded record of the current batch."""
        return self._next_offset if self._error is None else offset + 1

    def _load(self, at: int, header: BatchHeader, position: int) -> int:
        """Decode a batch. Returns the position before its first record, or after it if it has none."""
        self._next_offset = max(header.base_offset, position)
        if self._record_filter is not None:
            self._record_filter.begin_batch(header)
        is_skipped = self._is_left_out(at, header) or header.last_offset < position
        self._decoded = [] if is_skipped else self._decode(at, header, position)
        self._decoded.reverse()
        self._next_offset = max(header.last_offset + 1, position)
        return position if self._decoded or self._error else self._next_offset

    def _is_left_out(self, at: int, header: BatchHeader) -> bool:
        is_left_out = self._is_control(at, header) or self._is_aborted(header)
        if is_left_out and self._record_filter is not None:
            self._record_filter.skip(header)
        return is_left_out

    def _is_control(self, at: int, header: BatchHeader) -> bool:
        aborted = self._aborted
        if header.is_control and aborted is not None and header.producer_id >= 0:
            batch = self._records[at : at + header.size_bytes]
            aborted.see_marker(header.producer_id, header.base_offset, batch_body(batch, header))
        return header.is_control

    def _is_aborted(self, header: BatchHeader) -> bool:
        aborted = self._aborted
        return (
            aborted is not None
            and header.is_transactional
            and aborted.covers(header.producer_id, header.base_offset)
        )

    def _decode(self, at: int, header: BatchHeader, position: int) -> list[ConsumerRecord[KeyT, ValueT]]:
        fields: Iterator[RecordFields] = iterate_fields(self._records, at)
        record_filter = self._record_filter
        if record_filter is not None:
            fields = record_filter.select(header, fields)
        decoded = self._decode_fields(fields, position)
        if record_filter is not None:
            for record in decoded:
                cast("IndividualRecord[KeyT, ValueT]", record).holder = record_filter.holder
        return decoded

    def _decode_fields(
        self, fields: Iterator[RecordFields], position: int
    ) -> list[ConsumerRecord[KeyT, ValueT]]:
        topic, partition = self._name
        shape = cast(
            "type[ConsumerRecord[KeyT, ValueT]]",
            ConsumerRecord if self._record_filter is None else IndividualRecord,
        )
        if self._deserializers is None:
            new = _new_record
            plain = [
                new(shape, (topic, partition, offset, timestamp_ms, key, value, headers))
                for offset, timestamp_ms, key, value, headers in fields
                if offset >= position
            ]
            return cast("list[ConsumerRecord[KeyT, ValueT]]", plain)
        return list(self._deserialized(self._deserializers, shape, fields, position))

    def _deserialized(
        self,
        deserializers: Deserializers[KeyT, ValueT],
        shape: type[ConsumerRecord[KeyT, ValueT]],
        fields: Iterator[RecordFields],
        position: int,
    ) -> Iterator[ConsumerRecord[KeyT, ValueT]]:
        """Ends before a record that a deserializer refuses."""
        topic, partition = self._name
        for offset, timestamp_ms, key, value, headers in fields:
            if offset < position:
                continue
            try:
                yield shape(
                    topic,
                    partition,
                    offset,
                    timestamp_ms,
                    deserializers.key(key),
                    deserializers.value(value),
                    headers,
                )
            except Exception as error:
                self._error = self._unreadable(offset, repr(error))
                return

    def _unreadable(self, offset: int, reason: str) -> UnreadableRecordError:
        return UnreadableRecordError(*self._name, offset, reason)
