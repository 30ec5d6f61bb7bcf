"""The waits of a write in a transaction before its append."""

from __future__ import annotations

import asyncio

from barnabas.broker.produce.transactional_writes import ClientAbility, TransactionalWrites
from tests.coordinator.transaction.transaction_bench import BILLS, ID, ORDERS, Bench

ANOTHER_ID = "payments-1"


def writes_of(bench: Bench) -> TransactionalWrites:
    return TransactionalWrites(bench.coordinator, ID, ClientAbility(True, True), verifies=True)


async def test_a_partition_in_the_transaction_does_not_wait() -> None:
    """Transactional ids share the partitions of the coordinator's log, but must not wait for each other's
    writes.
    """
    bench = Bench()
    assert bench.coordinator.partition_of(ID) == bench.coordinator.partition_of(ANOTHER_ID)
    producer = bench.init()
    await writes_of(bench).add(producer, [ORDERS])
    bench.log.held = True
    bench.start_init(transactional_id=ANOTHER_ID)

    again, more = writes_of(bench), writes_of(bench)
    adding = [
        asyncio.create_task(writes.add(producer, partitions))
        for writes, partitions in ((again, [ORDERS]), (more, [ORDERS, BILLS]))
    ]
    await asyncio.sleep(0)
    assert [task.done() for task in adding] == [True, False]
    again.check(producer, ORDERS)
    bench.log.held = False
    bench.log.release()
    await adding[1]
    more.check(producer, BILLS)
