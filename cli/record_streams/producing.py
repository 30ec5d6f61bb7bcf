"""`barnabas produce`: writes the records of lines or files to a topic, and counts them by partition."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Final, NamedTuple

from barnabas.cli.printing import Printer
from barnabas.cli.progress import progress
from barnabas.cli.record_streams.record_input import NewRecord
from barnabas.cli.target import NotFoundError, Target
from barnabas.client.errors import UnknownTopicError
from barnabas.client.produce.producer import Producer
from barnabas.client.produce.producer_options import Codec
from barnabas.client.produce.record_queue import RecordMetadata
from barnabas.protocol.counted import counted
from barnabas.protocol.records import Header

LINGER_MS: Final = 5
UNANSWERED_MAX: Final = 10_000
"""The most records whose answers are outstanding. An error ends the command after at most this many more."""


class Given(NamedTuple):
    """The parts of each record that the command line sets; None and () leave those of the input."""

    key: bytes | None
    headers: Sequence[Header]
    partition: int | None


@dataclass(slots=True)
class _Written:
    """The records of one partition that the broker has confirmed."""

    first_offset: int
    last_offset: int
    count: int = 1


@dataclass(slots=True)
class Tally:
    """The confirmed records, by partition."""

    partitions: dict[int, _Written] = field(default_factory=dict[int, _Written])

    def add(self, place: RecordMetadata) -> None:
        written = self.partitions.get(place.partition)
        if written is None:
            self.partitions[place.partition] = _Written(place.offset, place.offset)
            return
        written.first_offset = min(written.first_offset, place.offset)
        written.last_offset = max(written.last_offset, place.offset)
        written.count += 1

    @property
    def count(self) -> int:
        return sum(written.count for written in self.partitions.values())


async def produce(
    target: Target,
    printer: Printer,
    topic: str,
    records: AsyncIterator[NewRecord],
    given: Given,
    *,
    compression: Codec,
    total: int | None,
) -> int:
    """Write the records, print the tally, also after an error, and return the number of records.

    Without a connection there is no tally. `total` is the number of records if it is known. Raises
    `NotFoundError` if there is no such topic, other errors of `ConsumerError`, and the errors of reading
    `records`.
    """
    tally = Tally()
    producer = Producer(target.bootstrap, **target.options, compression=compression, linger_ms=LINGER_MS)
    async with producer:
        try:
            with progress(f"producing to {topic}", total) as steps:
                await _send_all(producer, topic, records, given, tally, steps.advance)
        except UnknownTopicError as error:
            if tally.count:  # the topic was deleted meanwhile
                _print_tally(printer, topic, tally)
            raise NotFoundError(f"{error} Create it: barnabas topics create {topic}") from error
        except BaseException:
            _print_tally(printer, topic, tally)
            raise
    _print_tally(printer, topic, tally)
    return tally.count


async def _send_all(
    producer: Producer,
    topic: str,
    records: AsyncIterator[NewRecord],
    given: Given,
    tally: Tally,
    advance: Callable[[int], None],
) -> None:
    unanswered: deque[asyncio.Future[RecordMetadata]] = deque()
    async for record in records:
        sent = await producer.send(
            topic,
            record.value,
            key=record.key if given.key is None else given.key,
            headers=[*record.headers, *given.headers],
            partition=record.partition if given.partition is None else given.partition,
            timestamp_ms=record.timestamp_ms,
        )
        unanswered.append(sent)
        while unanswered and (unanswered[0].done() or len(unanswered) > UNANSWERED_MAX):
            tally.add(await unanswered.popleft())
            advance(1)
    while unanswered:
        tally.add(await unanswered.popleft())
        advance(1)


def _print_tally(printer: Printer, topic: str, tally: Tally) -> None:
    partitions = [
        {"partition": index, **asdict(written)} for index, written in sorted(tally.partitions.items())
    ]
    places = ", ".join(
        f"{topic}-{index} {_range(written)}" for index, written in sorted(tally.partitions.items())
    )
    printer.result(
        {"type": "produced", "topic": topic, "record_count": tally.count, "partitions": partitions},
        f"{counted(tally.count, 'record')} produced{f': {places}' if places else ''}",
    )


def _range(written: _Written) -> str:
    if written.first_offset == written.last_offset:
        return f"at {written.first_offset}"
    return f"from {written.first_offset} to {written.last_offset}"
