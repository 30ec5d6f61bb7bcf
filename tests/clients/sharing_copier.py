"""Copies records from one topic to another with the asyncio client, as one of several members that share the
partitions: the records of each poll in a transaction, together with their ranges of offsets.

A program of its own, with its arguments: bootstrap, source topic, target topic, group, transactional id, and
optionally a step and a number. When it reaches the step in the transaction with this number, or in a later
one, it stops itself (SIGSTOP). The steps are `ranges`, before the commit of the ranges, and `commit`, before
the commit of the transaction.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys

from barnabas.client import (
    CommitFailedError,
    Consumer,
    ConsumerRecord,
    Producer,
    ProducerFencedError,
    TransactionAbortedError,
)

RECORDS_PER_POLL = 10
ABORT_EVERY = 5
TRANSACTION_TIMEOUT_MS = 120_000

NEVER = ("", 0)

Record = ConsumerRecord[bytes | None, bytes | None]


class OwnAbortError(Exception):
    """The program aborts a transaction by itself."""


class Copier:
    """One member."""

    def __init__(
        self,
        producer: Producer,
        consumer: Consumer[bytes | None, bytes | None],
        target: str,
        stop: tuple[str, int],
    ) -> None:
        self._producer = producer
        self._consumer = consumer
        self._target = target
        self._stop = stop
        self._turn = 0

    async def run(self) -> None:
        """Prints a line after each transaction: `copied` and the number of records, or the reason why not."""
        await self._producer.init_transactions()
        async for records in self._consumer.batches():
            self._turn += 1
            try:
                await self._copy(records)
                print("copied", len(records), flush=True)
            except (OwnAbortError, CommitFailedError, TransactionAbortedError) as error:
                print(type(error).__name__, flush=True)
                self._consumer.seek_to_committed()

    async def _copy(self, records: list[Record]) -> None:
        async with self._producer.transaction():
            for record in records:
                place = b"%d-%d" % (record.partition, record.offset)
                await self._producer.send(self._target, place, key=record.key)
            await self._producer.flush()
            self._stop_at("ranges")
            ranges = self._consumer.take_ranges()
            await self._producer.send_offsets_to_transaction(ranges, self._consumer.group_metadata())
            if self._turn % ABORT_EVERY == 0:
                raise OwnAbortError
            self._stop_at("commit")

    def _stop_at(self, step: str) -> None:
        stop_step, stop_turn = self._stop
        if step == stop_step and self._turn >= stop_turn:
            self._stop = NEVER
            print("stops", flush=True)
            os.kill(os.getpid(), signal.SIGSTOP)


async def copy(
    bootstrap: str,
    source: str,
    target: str,
    group: str,
    transactional_id: str,
    step: str = "",
    turn: str = "0",
) -> None:
    async with (
        Producer(
            bootstrap, transactional_id=transactional_id, transaction_timeout_ms=TRANSACTION_TIMEOUT_MS
        ) as producer,
        Consumer(
            bootstrap,
            group=group,
            topics=[source],
            client_id=transactional_id,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            enable_auto_commit=False,
            allow_individual_commit=True,
            max_records=RECORDS_PER_POLL,
        ) as consumer,
    ):
        try:
            await Copier(producer, consumer, target, (step, int(turn))).run()
        except ProducerFencedError as error:
            print(type(error).__name__, flush=True)


if __name__ == "__main__":
    asyncio.run(copy(*sys.argv[1:]))
