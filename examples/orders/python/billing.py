"""Bills orders: a worker of a share group that writes an invoice for each order.

    python examples/orders/python/billing.py --bootstrap 127.0.0.1:9092

Any number of workers share the orders. An order that is no JSON object with an id and an amount is rejected.
If the payment service is down, the order is released, and delivered again. On SIGTERM a worker finishes the
order in work. A worker that dies loses nothing: its connection breaks, and the others get its order at once.
If it hangs, they get the order when its lock expires. `test_billing.py` tests the work with
`barnabas.testing`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import NamedTuple, cast

from barnabas.client import Producer, ShareConsumer


class Order(NamedTuple):
    """An order to bill."""

    order_id: str
    cents: int


class InvalidOrder(ValueError):  # noqa: N818  the business has a name for it
    """The record is no order."""


class PaymentServiceDown(Exception):  # noqa: N818
    """The payment service does not answer; it may do so later."""


Charge = Callable[[Order], Awaitable[None]]
"""Charges the customer. Raises PaymentServiceDown. Charging an order twice must have no effect."""


def read_order(value: bytes | None) -> Order:
    """The order in a record. Raises InvalidOrder."""
    try:
        fields: object = json.loads(value or b"")
    except ValueError as error:
        raise InvalidOrder(str(error)) from error
    if not isinstance(fields, dict):
        raise InvalidOrder("An order is a JSON object.")
    order = cast("dict[str, object]", fields)
    order_id, cents = order.get("id"), order.get("cents")
    if not isinstance(order_id, str) or not isinstance(cents, int) or cents <= 0:
        raise InvalidOrder("An order has an id and an amount in cents.")
    return Order(order_id, cents)


def order_consumer(bootstrap: str, *, orders: str, group: str) -> ShareConsumer[bytes | None, bytes | None]:
    """The consumer of a worker, which takes one order at a time."""
    return ShareConsumer(bootstrap, group=group, topics=[orders], max_records=1, client_id="billing")


async def bill(
    consumer: ShareConsumer[bytes | None, bytes | None], producer: Producer, *, invoices: str, charge: Charge
) -> None:
    """Bill orders until the consumer is stopped."""
    async for record in consumer:
        try:
            order = read_order(record.value)
            await charge(order)
        except InvalidOrder:
            record.reject()
        except PaymentServiceDown:
            record.release()
        else:
            invoice = {"order": order.order_id, "cents": order.cents}
            await producer.send_and_wait(invoices, json.dumps(invoice).encode(), key=order.order_id.encode())
            record.accept()


async def work(options: argparse.Namespace) -> None:
    """Bill orders until SIGTERM."""
    async with (
        Producer(options.bootstrap) as producer,
        order_consumer(options.bootstrap, orders=options.orders, group=options.group) as consumer,
    ):
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, consumer.stop)
        await bill(consumer, producer, invoices=options.invoices, charge=_charge)


async def _charge(order: Order) -> None:
    print(f"charged {order.cents / 100:.2f} for order {order.order_id}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Bill the orders of a topic.")
    parser.add_argument("--bootstrap", default="127.0.0.1:9092", help="the broker (default: %(default)s)")
    parser.add_argument("--orders", default="orders", help="the topic to read (default: %(default)s)")
    parser.add_argument("--invoices", default="invoices", help="the topic to write (default: %(default)s)")
    parser.add_argument("--group", default="billing", help="the share group (default: %(default)s)")
    with suppress(KeyboardInterrupt):
        asyncio.run(work(parser.parse_args()))


if __name__ == "__main__":
    main()
