"""Sends an order to the topic `orders` every 100 ms until it is stopped."""

import itertools
import os
import time

from confluent_kafka import Producer


def main() -> None:
    producer = Producer({"bootstrap.servers": os.environ["BOOTSTRAP_SERVERS"]})
    for number in itertools.count(1):
        producer.produce("orders", key=str(number % 10), value=f"order {number}")
        producer.poll(0)
        time.sleep(0.1)


if __name__ == "__main__":
    main()
