"""A sink: writes the records of a share group into SQLite, and acknowledges each record by its outcome.

    outcome                                    acknowledgement
    the row is written                         ACCEPT
    the record can never be a row              REJECT: it is not delivered again, and becomes a dead letter
    the database is busy, full or away         RELEASE: it is delivered again, here or elsewhere

A record is accepted after its row is durable. If the sink stops in between, the record is delivered again,
and its row is there already: its place in the topic is the primary key. So each record is one row.

The database works in a thread, and the client renews the locks meanwhile (KIP-1222). A write may take longer
than the lock of a record, up to `hold_ms_max`.

    python sqlite_sink.py --bootstrap 127.0.0.1:9092 --group sink --topic orders --database orders.db

A record is a JSON object with `id` and `amount`, which is not negative.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import signal
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from typing import Any, NamedTuple

from barnabas.client import ShareConsumer, ShareRecord

log = logging.getLogger("sink")

PAUSE_SECONDS = 1.0
"""After a temporary failure. Each delivery counts towards the group's `share.delivery.count.limit`."""
HOLD_MS_MAX = 300_000

CREATE = """
    create table if not exists orders (
        topic text not null,
        partition integer not null,
        "offset" integer not null,
        id text not null,
        amount real not null check (amount >= 0),
        delivery_count integer not null,
        primary key (topic, partition, "offset")
    ) without rowid
"""
INSERT = """
    insert into orders (topic, partition, "offset", id, amount, delivery_count) values (?, ?, ?, ?, ?, ?)
    on conflict (topic, partition, "offset") do nothing
"""

Record = ShareRecord[bytes | None, bytes | None]
Row = tuple[str, int, int, str, float, int]


class PermanentError(Exception):
    """The record can never be a row."""


class Written(NamedTuple):
    """The outcome of a batch: its rows are durable, except those that the table refuses."""

    refused: dict[int, str]
    """By the index of the row, the reason."""


def row_of(record: Record) -> Row:
    """Raises `PermanentError`."""
    try:
        fields: Any = json.loads(record.value or b"")
        order_id, amount = str(fields["id"]), float(fields["amount"])
        order_id.encode()  # SQLite refuses half a surrogate pair
    except (KeyError, OverflowError, RecursionError, TypeError, ValueError) as error:
        raise PermanentError(f"it is not an order: {error!r}") from error
    return (record.topic, record.partition, record.offset, order_id, amount, record.delivery_count)


class Table:
    """The table of orders. Only one thread at a time may call it."""

    def __init__(self, path: str, busy_seconds: float) -> None:
        self._database = sqlite3.connect(path, timeout=busy_seconds, check_same_thread=False)

    def close(self) -> None:
        self._database.close()

    def write(self, rows: Sequence[Row]) -> Written:
        """Write the rows in one transaction. Raises `sqlite3.OperationalError`; then none is written."""
        refused: dict[int, str] = {}
        with self._database:  # commits at its end; an exception rolls back
            self._database.execute(CREATE)
            for index, row in enumerate(rows):
                try:
                    self._database.execute(INSERT, row)
                except sqlite3.IntegrityError as error:
                    refused[index] = str(error)
        return Written(refused)


class Sink:
    """Writes batches of records, and acknowledges them."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def handle(self, records: Sequence[Record]) -> bool:
        """Write a batch; whether that was possible."""
        rows: list[Row] = []
        good: list[Record] = []
        for record in records:
            try:
                rows.append(row_of(record))
                good.append(record)
            except PermanentError as error:
                reject(record, str(error))
        try:
            written = await asyncio.to_thread(self._table.write, rows)
        except sqlite3.OperationalError as error:
            log.warning("%d records are released: %s", len(good), error)
            for record in good:
                record.release()
            return False
        for index, record in enumerate(good):
            if index in written.refused:
                reject(record, written.refused[index])
            else:
                record.accept()
        return True


def reject(record: Record, reason: str) -> None:
    log.error("%s-%d, offset %d is rejected: %s", record.topic, record.partition, record.offset, reason)
    record.reject()


async def run(options: argparse.Namespace) -> None:
    """Write records until a signal."""
    with closing(Table(options.database, options.busy_seconds)) as table:
        sink = Sink(table)
        consumer = ShareConsumer(
            options.bootstrap, group=options.group, topics=options.topic, hold_ms_max=HOLD_MS_MAX
        )
        stopped = asyncio.Event()
        for one in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(one, stopped.set)
        async with consumer:
            while not stopped.is_set():
                records = await consumer.poll(timeout=1.0)
                if records and not await sink.handle(records):
                    await pause(stopped)


async def pause(stopped: asyncio.Event) -> None:
    """Wait, but not after a signal."""
    try:
        async with asyncio.timeout(PAUSE_SECONDS):
            await stopped.wait()
    except TimeoutError:
        return


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the records of a share group into SQLite.")
    parser.add_argument("--bootstrap", metavar="HOST:PORT,...", default="127.0.0.1:9092")
    parser.add_argument("--group", metavar="ID", required=True)
    parser.add_argument("--topic", metavar="NAME", action="append", required=True)
    parser.add_argument("--database", metavar="FILE", required=True)
    parser.add_argument(
        "--busy-seconds", type=float, default=20.0, help="how long a locked database is waited for"
    )
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
