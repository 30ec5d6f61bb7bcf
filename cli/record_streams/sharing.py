"""`barnabas share` in a script: prints the records of a share group, and acknowledges all of them alike.

`interactive` lets a user decide about each record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Final, NamedTuple

from barnabas.cli.printing import Printer
from barnabas.cli.record_streams.consuming import Until
from barnabas.cli.record_streams.record_output import RecordOutput
from barnabas.cli.target import Target
from barnabas.client.errors import AcknowledgeError
from barnabas.client.share.record import ShareRecord
from barnabas.client.share.share_consumer import ShareConsumer
from barnabas.client.topic_partition import TopicPartition

BytesRecord = ShareRecord[bytes | None, bytes | None]
BytesConsumer = ShareConsumer[bytes | None, bytes | None]

BATCH_RECORDS: Final = 500
"""The most records that are printed before they are acknowledged."""


class Verdict(Enum):
    """The acknowledgement of a record; the value is the word for its result."""

    ACCEPT = "accepted"
    RELEASE = "released"
    REJECT = "rejected"

    def apply(self, record: BytesRecord) -> None:
        """Queue the acknowledgement."""
        {Verdict.ACCEPT: record.accept, Verdict.RELEASE: record.release, Verdict.REJECT: record.reject}[
            self
        ]()


class Reading(NamedTuple):
    """The group that a command reads from."""

    group_id: str
    topics: Sequence[str]
    lock_duration_ms: int | None
    """None for the group's."""


async def share(
    target: Target, output: RecordOutput, reading: Reading, verdict: Verdict, until: Until
) -> int:
    """Print records, then acknowledge them; returns the number of records that the broker has acknowledged.

    A record is acknowledged only after it was printed. Raises `ConsumerError`, such as `AcknowledgeError`.
    """
    settled: Counter[Verdict] = Counter()
    async with open_consumer(target, reading, max_records=BATCH_RECORDS, renew_locks=True) as consumer:
        try:
            while settled.total() != until.record_count:
                left = BATCH_RECORDS if until.record_count is None else until.record_count - settled.total()
                records = await consumer.poll(
                    timeout=until.idle_seconds, max_records=min(left, BATCH_RECORDS)
                )
                if not records:
                    break
                for record in records:
                    output.write(record, delivery_count=record.delivery_count)
                output.printer.flush()
                settled[verdict] += await settle(consumer, records, verdict)
        finally:
            print_tally(output.printer, reading.group_id, settled)
    return settled.total()


def open_consumer(target: Target, reading: Reading, *, max_records: int, renew_locks: bool) -> BytesConsumer:
    """A consumer that holds no more records than it gets, to be entered with `async with`."""
    return ShareConsumer(
        target.bootstrap,
        group=reading.group_id,
        topics=reading.topics,
        acquire_mode="record_limit",
        prefetch_records=0,
        max_records=max_records,
        renew_locks=renew_locks,
        record_lock_duration_ms=reading.lock_duration_ms,
        **target.options,
    )


async def settle(consumer: BytesConsumer, records: Iterable[BytesRecord], verdict: Verdict) -> int:
    """Acknowledge the records that are still held, and wait for the answers; the number of these records.

    Raises `AcknowledgeError` if the broker refuses one.
    """
    held = [record for record in records if record.is_held]
    for record in held:
        verdict.apply(record)
    outcomes: dict[TopicPartition, AcknowledgeError | None] = await consumer.commit()
    for error in outcomes.values():
        if error is not None:
            raise error
    return len(held)


def print_tally(printer: Printer, group_id: str, settled: Counter[Verdict]) -> None:
    """Print the numbers of acknowledged records: at a terminal, and as JSON."""
    counts = {verdict.value: settled[verdict] for verdict in Verdict}
    if printer.as_json:
        printer.row({"type": "acknowledged", "group": group_id, **counts})
    elif printer.is_terminal:
        printer.text(", ".join(f"{count} {word}" for word, count in counts.items()))
