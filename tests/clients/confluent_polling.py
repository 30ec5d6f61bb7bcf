"""Opening and polling confluent-kafka's ShareConsumer in tests."""

from collections.abc import Callable

from confluent_kafka import Message, ShareConsumer

from tests.clients.polling import SECONDS_MAX, eventually

POLL_SECONDS = 0.2


def share_consumer(
    bootstrap: str, group: str, topic: str, *, mode: str = "explicit", max_poll_records: int = 500
) -> ShareConsumer:
    """A subscribed share consumer; close it."""
    consumer = ShareConsumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "share.acknowledgement.mode": mode,
            "max.poll.records": max_poll_records,
        }
    )
    consumer.subscribe([topic])
    return consumer


def poll(consumer: ShareConsumer) -> list[Message]:
    """One poll; an error in place of a record fails the test."""
    messages = list(consumer.poll(POLL_SECONDS))
    assert [message.error() for message in messages] == [None] * len(messages)
    return messages


def poll_some(consumer: ShareConsumer) -> list[Message]:
    """Poll until records arrive; the records of that one poll."""
    return eventually(lambda: poll(consumer), awaited="the share consumer gets records")


def poll_values(consumer: ShareConsumer, count: int) -> list[str]:
    """Poll until `count` records have arrived, with implicit acceptance; their values."""
    values: list[str] = []

    def enough() -> bool:
        values.extend(text(message) for message in poll(consumer))
        return len(values) >= count

    eventually(enough, awaited=f"the share consumer gets {count} records")
    return values


def text(message: Message) -> str:
    """A record's value as text."""
    value = message.value()
    assert value is not None
    return value.decode()


def settle(consumer: ShareConsumer, messages: list[Message], acknowledge: Callable[[Message], None]) -> None:
    """Acknowledge messages one by one, commit, and assert that the broker confirmed it."""
    for message in messages:
        acknowledge(message)
    results = consumer.commit_sync(SECONDS_MAX)
    assert results
    assert set(results.values()) == {None}
