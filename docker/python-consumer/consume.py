"""Ships orders: reads the topic `orders` as a member of the share group `workers`, and writes to the topic
`shipments`.

An order is accepted when its shipment is written. So an order that was in work when a program failed is
delivered again, and may have two shipments.
"""

import os

from confluent_kafka import AcknowledgeType, KafkaError, Message, Producer, ShareConsumer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

GROUP = "workers"
COMMIT_SECONDS = 20


def main() -> None:
    bootstrap = {"bootstrap.servers": os.environ["BOOTSTRAP_SERVERS"]}
    begin_with_first_order(AdminClient(bootstrap))
    producer = Producer(bootstrap)
    consumer = ShareConsumer({**bootstrap, "group.id": GROUP, "share.acknowledgement.mode": "explicit"})
    consumer.subscribe(["orders"])
    while True:
        work(consumer, producer)


def begin_with_first_order(admin: AdminClient) -> None:
    """A new group begins at the end of its topics unless its setting says otherwise."""
    earliest = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    group = ConfigResource(ConfigResource.Type.GROUP, GROUP, incremental_configs=[earliest])
    for done in admin.incremental_alter_configs([group]).values():
        done.result()


def work(consumer: ShareConsumer, producer: Producer) -> None:
    """Ship the orders of one poll, and acknowledge each by its outcome."""
    orders = [message for message in consumer.poll(1.0) if message.error() is None]
    failed: set[tuple[int, int]] = set()
    for order in orders:
        ship(order, producer, failed)
    producer.flush()
    for order in orders:
        is_shipped = (order.partition(), order.offset()) not in failed
        consumer.acknowledge(order, AcknowledgeType.ACCEPT if is_shipped else AcknowledgeType.RELEASE)
    if orders:
        for partition, error in consumer.commit_sync(COMMIT_SECONDS).items():
            if error is not None:
                print(f"not acknowledged: {partition} {error}")


def ship(order: Message, producer: Producer, failed: set[tuple[int, int]]) -> None:
    """Send the shipment; a failure adds the order's place to `failed`."""
    place = order.partition(), order.offset()
    print(f"{place[0]}-{place[1]} {order.value().decode()} (delivery {order.delivery_count()})")

    def note(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            print(f"not shipped: {error}")
            failed.add(place)

    producer.produce("shipments", key="python", value=order.value(), on_delivery=note)
    producer.poll(0)


if __name__ == "__main__":
    main()
