"""Copies records from one topic to another as a member of a share group: the records of each poll in a
transaction, together with their acknowledgements.

A program of its own, with its arguments: bootstrap, source topic, target topic, group, transactional id. It
prints a line at each step, for the test to kill it there.
"""

from __future__ import annotations

import asyncio
import sys

from barnabas.client import (
    AcknowledgeError,
    BrokerUnavailableError,
    Producer,
    ShareConsumer,
    ShareRecord,
    TransactionAbortedError,
)

RECORDS_PER_POLL = 10
ABORT_EVERY = 7

Record = ShareRecord[bytes | None, bytes | None]


class OwnAbortError(Exception):
    """The program aborts a transaction by itself."""


class Copier:
    """One member."""

    def __init__(self, producer: Producer, consumer: ShareConsumer[bytes | None, bytes | None]) -> None:
        self._producer = producer
        self._consumer = consumer
        self._turn = 0

    async def run(self, target: str) -> None:
        """Prints `acknowledged` in each transaction, and after it `copied` or the reason why not."""
        await self._producer.init_transactions()
        async for records in self._consumer.batches():
            self._turn += 1
            try:
                await self._copy(records, target)
                await self._commit()
                print("copied", flush=True)
            except (OwnAbortError, AcknowledgeError, TransactionAbortedError) as error:
                await self._producer.abort_transaction()
                for record in records:
                    if record.is_held:
                        record.release()
                print(type(error).__name__, flush=True)

    async def _copy(self, records: list[Record], target: str) -> None:
        self._producer.begin_transaction()
        for record in records:
            await self._producer.send(target, record.value)
        await self._producer.acknowledge(records)
        print("acknowledged", flush=True)
        if self._turn % ABORT_EVERY == 0:
            raise OwnAbortError

    async def _commit(self) -> None:
        """The commit, asked for until its result is known."""
        while True:
            try:
                return await self._producer.commit_transaction()
            except BrokerUnavailableError:
                continue


async def copy(bootstrap: str, source: str, target: str, group: str, transactional_id: str) -> None:
    async with (
        Producer(bootstrap, transactional_id=transactional_id) as producer,
        ShareConsumer(bootstrap, group=group, topics=[source], max_records=RECORDS_PER_POLL) as consumer,
    ):
        await Copier(producer, consumer).run(target)


if __name__ == "__main__":
    asyncio.run(copy(*sys.argv[1:]))
