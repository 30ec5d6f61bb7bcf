"""The records of a consumer. With individual commits, each record can be processed and committed by itself.

    async with record:            at the end it is processed; after an exception it is not
        await work(record.value)
    record.mark_processed()       the same without a block

A processed record is committed with the next commit of the consumer.
"""

from __future__ import annotations

from types import TracebackType
from typing import Generic, NamedTuple, NoReturn, Protocol, Self

from barnabas.client.errors import MisuseError
from barnabas.client.record_content import Headers, KeyT, ValueT


class ConsumerRecord(NamedTuple, Generic[KeyT, ValueT]):
    """One record of a topic; the topic decides whether `timestamp_ms` is the producer's or the broker's."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: KeyT
    value: ValueT
    headers: Headers
    """Names and values, in the producer's order; a name may occur more than once."""

    def mark_processed(self) -> None:
        """The record is processed, and will be committed. It has no effect after the partition is given up:
        the partition's next owner gets the record.

        Raises `MisuseError` without the option `allow_individual_commit`.
        """
        _refuse()

    async def __aenter__(self) -> Self:
        """The record counts as processed at the end of the block, not with the next poll."""
        _refuse()

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """After an exception the record is not committed. `seek_to_committed` delivers it again."""


class RecordHolder(Protocol):
    """Knows which records of a partition the application processes."""

    def hold(self, offset: int) -> None:
        """The application says by itself when the record is processed."""
        ...

    def mark_processed(self, offset: int) -> None: ...


class IndividualRecord(ConsumerRecord[KeyT, ValueT]):
    """A record of a consumer with individual commits."""

    holder: RecordHolder

    def mark_processed(self) -> None:
        self.holder.mark_processed(self.offset)

    async def __aenter__(self) -> Self:
        self.holder.hold(self.offset)
        return self

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            self.holder.mark_processed(self.offset)


def _refuse() -> NoReturn:
    raise MisuseError(
        "Single records can be committed only with the option allow_individual_commit; without it, "
        "Consumer.commit commits all records that were delivered."
    )
