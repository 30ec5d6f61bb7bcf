"""Checks the work of the consumers in compose.yml: each order must have a shipment, and must be acknowledged.

    check.py send FIRST LAST    sends the orders with these numbers
    check.py verify COUNT       waits for the shipments of the orders 1 to COUNT, and for the group's lag 0

The exit code of `verify` is 1 if an order is not shipped or not acknowledged in time, or if one of the
consumers had no part in the work.
"""

import asyncio
import os
import sys
from collections import Counter

from barnabas.client import Consumer, Producer, ShareGroupAdmin, TopicPartition, UnknownTopicError

BOOTSTRAP = os.environ["BOOTSTRAP_SERVERS"]
GROUP, ORDERS, SHIPMENTS = "workers", "orders", "shipments"
CONSUMERS = {"java", "python"}
WAIT_SECONDS = 120.0
"""Longer than the lock of a record that a consumer held when the broker failed, and the delays of a
reconnect.
"""
PAUSE_SECONDS = 0.5


async def send(first: int, last: int) -> int:
    """Send the orders one by one, so that both consumers get some."""
    async with Producer(BOOTSTRAP) as producer:
        for number in range(first, last + 1):
            await send_order(producer, name(number))
    print(f"orders {first} to {last} are sent")
    return 0


async def send_order(producer: Producer, order: bytes) -> None:
    """Send one order, and wait for its topic, which the consumer in Java creates."""
    async with asyncio.timeout(WAIT_SECONDS):
        while True:
            try:
                await producer.send_and_wait(ORDERS, value=order)
            except UnknownTopicError:
                await asyncio.sleep(PAUSE_SECONDS)
            else:
                return


async def verify(count: int) -> int:
    """Wait for all shipments and acknowledgements; 0 or 1."""
    expected = {name(number) for number in range(1, count + 1)}
    shipped: Counter[bytes] = Counter()
    workers: Counter[str] = Counter()
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            await read_shipments(expected, shipped, workers)
            await wait_for_acknowledgements()
    except TimeoutError:
        missing = sorted(expected - shipped.keys())
        print(f"after {WAIT_SECONDS:.0f} seconds {len(missing)} orders are not shipped: {missing[:10]}")
        print(f"lag of the group: {await lag()}")
        return 1
    again = sum(shipped.values()) - len(shipped)
    print(f"{count} orders are shipped and acknowledged, {again} of them again; by worker: {dict(workers)}")
    if CONSUMERS - workers.keys():
        print(f"no order was shipped by: {CONSUMERS - workers.keys()}")
        return 1
    return 0


async def read_shipments(expected: set[bytes], shipped: Counter[bytes], workers: Counter[str]) -> None:
    """Count shipments by order and by worker until each expected order has one."""
    async with Consumer(
        BOOTSTRAP,
        group="check",
        topics=[SHIPMENTS],
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    ) as consumer:
        async for record in consumer:
            shipped[record.value or b""] += 1
            workers[(record.key or b"").decode()] += 1
            if expected <= shipped.keys():
                return


async def wait_for_acknowledgements() -> None:
    while True:
        if await lag() == 0:
            return
        await asyncio.sleep(PAUSE_SECONDS)


async def lag() -> int | None:
    """The orders that are not in a final state; None if the broker does not know."""
    async with ShareGroupAdmin(BOOTSTRAP, group=GROUP) as admin:
        positions = await admin.positions()
    position = positions.get(TopicPartition(ORDERS, 0))
    return None if position is None else position.lag


def name(number: int) -> bytes:
    return b"order %d" % number


def main(arguments: list[str]) -> int:
    match arguments:
        case ["send", first, last]:
            return asyncio.run(send(int(first), int(last)))
        case ["verify", count]:
            return asyncio.run(verify(int(count)))
        case _:
            print(__doc__, file=sys.stderr)
            return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
