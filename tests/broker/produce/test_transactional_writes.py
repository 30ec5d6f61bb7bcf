"""What a write in a transaction waits for before it goes into its log."""

from __future__ import annotations

import asyncio

from barnabas.broker.produce.transactional_writes import ClientAbility, TransactionalWrites
from tests.coordinator.transaction.transaction_bench import BILLS, ID, ORDERS, Bench

ANOTHER_ID = "payments-1"


def writes_of(bench: Bench) -> TransactionalWrites:
    return TransactionalWrites(bench.coordinator, ID, ClientAbility(True, True), verifies=True)


async def test_a_partition_that_takes_part_waits_for_nobody() -> None:
    """Ids share the partitions of the coordinator's log, and what one has written there is none of another's
    business.
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
