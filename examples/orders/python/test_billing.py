"""The tests of the billing worker, with a real broker.

    pytest examples/orders/python

The plugin of `barnabas.testing` has the fixtures `share_broker`, `make_share_topic` and `share_group`. The
tests need pytest-asyncio (`asyncio_mode = auto`).
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager

import pytest
from billing import Charge, Order, PaymentServiceDown, bill, order_consumer

from barnabas.client import Producer
from barnabas.pytest_plugin import MakeTopic
from barnabas.testing import Broker

LOCK_SECONDS = 30
DELIVERIES_MAX = 5
"""Both are the defaults of share groups."""


class Shop:
    """The topics of one test, and the payments that were made."""

    def __init__(self, broker: Broker, orders: str, invoices: str, group: str) -> None:
        self.broker = broker
        self.orders = orders
        self.invoices = invoices
        self.group = group
        self.charged: list[str] = []

    async def place(self, *values: bytes) -> None:
        """Send the values of orders."""
        async with Producer(self.broker.bootstrap_servers) as producer:
            for value in values:
                await producer.send(self.orders, value)

    async def work(self, charge: Charge) -> None:
        servers = self.broker.bootstrap_servers
        async with (
            Producer(servers) as producer,
            order_consumer(servers, orders=self.orders, group=self.group) as consumer,
        ):
            await bill(consumer, producer, invoices=self.invoices, charge=charge)

    @asynccontextmanager
    async def worker(self, charge: Charge | None = None) -> AsyncGenerator[None]:
        """A worker for the time of the block."""
        work = asyncio.create_task(self.work(charge or self.charge))
        try:
            yield
        finally:
            work.cancel()
            await asyncio.wait([work])

    @contextmanager
    def worker_in_thread(self, charge: Charge, ends: threading.Event) -> Generator[None]:
        """A worker with an event loop of its own. `ends` lets `charge` return."""

        async def work() -> None:
            task = asyncio.create_task(self.work(charge))
            await asyncio.to_thread(ends.wait)
            task.cancel()
            await asyncio.wait([task])

        thread = threading.Thread(target=lambda: asyncio.run(work()))
        thread.start()
        try:
            yield
        finally:
            ends.set()
            thread.join()

    async def charge(self, order: Order) -> None:
        self.charged.append(order.order_id)

    async def expect_invoices(self, *order_ids: str) -> None:
        """Assert that these orders have an invoice each, and no others. The assertion waits in a thread, so
        that the workers of this loop go on.
        """
        expected = [(one, json.dumps({"order": one, "cents": 999})) for one in order_ids]
        await asyncio.to_thread(self.broker.assert_records, self.invoices, expected, in_any_order=True)


def order(order_id: str) -> bytes:
    return json.dumps({"id": order_id, "cents": 999}).encode()


@pytest.fixture
def shop(share_broker: Broker, make_share_topic: MakeTopic, share_group: str) -> Shop:
    return Shop(share_broker, make_share_topic(), make_share_topic(), share_group)


async def test_each_order_gets_an_invoice(shop: Shop) -> None:
    await shop.place(order("a"), order("b"), order("c"))
    async with shop.worker(), shop.worker():
        await shop.expect_invoices("a", "b", "c")


@pytest.mark.parametrize("value", [b"", b"[]", b'{"id": 7, "cents": 999}', b'{"id": "x", "cents": -1}'])
async def test_a_record_that_is_no_order_does_not_stop_the_others(shop: Shop, value: bytes) -> None:
    await shop.place(value, order("a"))
    async with shop.worker():
        await shop.expect_invoices("a")
    assert shop.charged == ["a"]


async def test_an_order_is_billed_once_the_payment_service_is_back(shop: Shop) -> None:
    failures = iter([PaymentServiceDown(), PaymentServiceDown()])

    async def charge(order: Order) -> None:
        failure = next(failures, None)
        if failure is not None:
            raise failure

    await shop.place(order("a"))
    async with shop.worker(charge):
        await shop.expect_invoices("a")


async def test_the_order_of_a_worker_that_hangs_is_billed_by_another(shop: Shop) -> None:
    hangs, ends = threading.Event(), threading.Event()

    async def hang(order: Order) -> None:
        hangs.set()
        ends.wait()  # blocks the worker's loop, so that it does not even fetch
        raise PaymentServiceDown

    await shop.place(order("a"))
    with shop.worker_in_thread(hang, ends):
        await asyncio.to_thread(hangs.wait)
        async with shop.worker():
            shop.broker.clock.advance(LOCK_SECONDS + 1)
            await shop.expect_invoices("a")


async def test_an_order_that_always_fails_is_given_up_after_five_deliveries(shop: Shop) -> None:
    deliveries, is_last = 0, asyncio.Event()

    async def fail(order: Order) -> None:
        nonlocal deliveries
        if order.order_id == "bad":
            deliveries += 1
            if deliveries == DELIVERIES_MAX:
                is_last.set()
            raise PaymentServiceDown

    await shop.place(order("bad"))
    async with shop.worker(fail):
        await is_last.wait()
        await shop.place(order("a"))
        await shop.expect_invoices("a")
    assert deliveries == DELIVERIES_MAX


@pytest.mark.faults
async def test_a_lost_answer_makes_no_second_invoice(shop: Shop) -> None:
    with shop.broker.faults.cut("Produce", topic=shop.invoices, times=1) as fault:
        await shop.place(order("a"))
        async with shop.worker():
            await shop.expect_invoices("a")
        assert fault.hits == 1


@pytest.mark.faults
async def test_a_worker_survives_an_error_of_the_coordinator(shop: Shop) -> None:
    shop.broker.faults.error("COORDINATOR_NOT_AVAILABLE", "ShareGroupHeartbeat", group=shop.group, times=1)
    await shop.place(order("a"))
    async with shop.worker():
        await shop.expect_invoices("a")
