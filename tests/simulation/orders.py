"""The records that members of a sharing group process: with keys and without, some in transactions, some of
these aborted, so that there are offsets without a record for readers.
"""

from __future__ import annotations

import asyncio
from itertools import count
from typing import Any

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import ProducerIdentity
from barnabas.protocol.record_batch import TRANSACTIONAL_FLAG, build_batch
from tests.simulation.client import Disconnected
from tests.simulation.transactional_producers import NO_PRODUCER
from tests.simulation.world import World

_KEYS = tuple(f"customer-{number}".encode() for number in range(8))
_PAUSE_SECONDS_MAX = 0.25
_BATCH_SIZES = (1, 1, 2, 4)
_TRANSACTION_TIMEOUT_MS = 1000
_WITHOUT_KEY = b"nobody"


def key_of(value: bytes) -> bytes | None:
    """The key of a record with this value."""
    key = value.split(b"/")[0]
    return None if key == _WITHOUT_KEY else key


class Orders:
    """The producer of these records. It sends each batch once, and does not care about the answer."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._random = world.random("orders")
        self._client = world.client("orders")
        self._numbers = count()
        self._producer = NO_PRODUCER
        self._sequences: dict[int, int] = {}

    async def run(self) -> None:
        while not self._world.is_ending:
            await asyncio.sleep(self._random.uniform(0.02, _PAUSE_SECONDS_MAX))
            try:
                if self._random.random() < 0.8:
                    await self._produce(**self._batch())
                else:
                    await self._run_transaction()
            except Disconnected:
                self._client.disconnect()
                self._producer = NO_PRODUCER

    async def _run_transaction(self) -> None:
        fields: dict[str, Any] = {"transactional_id": "orders"}
        if self._producer == NO_PRODUCER:
            made = await self._client.ask(
                "init_producer_id", **fields, transaction_timeout=_TRANSACTION_TIMEOUT_MS
            )
            self._is_now(made)
        who = {"producer_id": self._producer.producer_id, "producer_epoch": self._producer.producer_epoch}
        for _ in range(self._random.randint(1, 2)):
            await self._produce(**fields, **self._batch(is_transactional=True))
        ended = await self._client.ask("end_txn", 5, **fields, **who, committed=self._random.random() < 0.6)
        self._is_now(ended)

    def _is_now(self, response: Any) -> None:
        if response.error_code is not ErrorCode.none:
            raise Disconnected
        self._producer = ProducerIdentity(response.producer_id, response.producer_epoch)
        self._sequences.clear()

    async def _produce(self, **fields: Any) -> None:
        response = await self._client.ask("produce", acks=-1, **fields)
        code = response.responses[0].partition_responses[0].error_code
        self._world.trace.event(f"orders: {code.name}")
        if code is not ErrorCode.none:
            raise Disconnected

    def _batch(self, *, is_transactional: bool = False) -> dict[str, Any]:
        orders = self._world.orders
        if orders is None:
            raise Disconnected
        partition = self._random.randrange(orders.partition_count)
        records = [self._record() for _ in range(self._random.choice(_BATCH_SIZES))]
        options: dict[str, int] = {}
        if is_transactional:
            options = {
                "attributes": TRANSACTIONAL_FLAG,
                "producer_id": self._producer.producer_id,
                "producer_epoch": self._producer.producer_epoch,
                "base_sequence": self._sequences.get(partition, 0),
            }
            self._sequences[partition] = self._sequences.get(partition, 0) + len(records)
        wall_ms = self._world.machine.clock.wall_ms()
        batch = build_batch(0, records, leader_epoch=-1, timestamp_ms=wall_ms, **options)
        data = {"topic_id": orders.topic_id, "partition_data": [{"index": partition, "records": batch}]}
        return {"topic_data": [data]}

    def _record(self) -> tuple[bytes | None, bytes]:
        key = None if self._random.random() < 0.2 else self._random.choice(_KEYS)
        return key, (key or _WITHOUT_KEY) + b"/%d" % next(self._numbers)
