"""Each kind of fault, as clients meet it."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.client import ProduceError, Producer
from barnabas.testing import Broker, ControlError, Fault
from tests.testing.conftest import GROUP, TOPIC
from tests.testing.working import consumer_of, produce, take


async def hit(fault: Fault) -> None:
    """Wait until a request has met the fault."""
    while not await asyncio.to_thread(lambda: fault.hits):
        pass


async def test_a_refused_request_is_not_carried_out(broker: Broker) -> None:
    with broker.faults.refuse("Produce", topic=TOPIC, times=2) as fault:
        await produce(broker, b"a")
        assert fault.hits == 2
    assert fault.hits == 2
    broker.assert_records(TOPIC, [b"a"], within_seconds=0)


async def test_a_cut_request_is_carried_out_and_repeated_by_the_client(broker: Broker) -> None:
    with broker.faults.cut("Produce", topic=TOPIC, times=1) as fault:
        await produce(broker, b"a")
    assert fault.hits == 1
    broker.assert_records(TOPIC, [b"a"], within_seconds=0)


async def test_an_error_answers_the_request(broker: Broker) -> None:
    with (
        broker.faults.error("MESSAGE_TOO_LARGE", "Produce", topic=TOPIC),
        pytest.raises(ProduceError, match="message_too_large"),
    ):
        async with Producer(broker.bootstrap_servers) as producer:
            await producer.send_and_wait(TOPIC, b"a")
    broker.assert_records(TOPIC, [], within_seconds=0)


async def test_a_temporary_error_is_retried_by_the_client(broker: Broker) -> None:
    broker.faults.error("NOT_LEADER_OR_FOLLOWER", "ShareFetch", group=GROUP, times=2)
    broker.faults.error("COORDINATOR_NOT_AVAILABLE", "ShareGroupHeartbeat", group=GROUP, times=1)
    await produce(broker, b"a")
    async with consumer_of(broker) as consumer:
        assert (await take(consumer)).value == b"a"


async def test_a_delay_lasts_until_the_clock_is_advanced(broker: Broker) -> None:
    with broker.faults.delay(3600, "Produce", times=1) as fault:
        writing = asyncio.create_task(produce(broker, b"a"))
        await hit(fault)
        broker.assert_records(TOPIC, [], within_seconds=0)
        await asyncio.to_thread(broker.clock.advance, 3601)
        await writing
    broker.assert_records(TOPIC, [b"a"], within_seconds=0)


async def test_a_fault_concerns_its_topic_and_its_group_only(broker: Broker) -> None:
    broker.create_topic("other")
    topic = broker.faults.error("MESSAGE_TOO_LARGE", topic="other")
    group = broker.faults.error("GROUP_ID_NOT_FOUND", group="others")
    await produce(broker, b"a")
    async with consumer_of(broker) as consumer:
        (await take(consumer)).accept()
    assert (topic.hits, group.hits) == (0, 0)


async def test_a_fault_of_a_topic_meets_fetches_of_a_session(broker: Broker) -> None:
    """Later requests of a session do not name the topic."""
    async with consumer_of(broker) as consumer:
        await produce(broker, b"a")
        (await take(consumer)).accept()
        with broker.faults.refuse("ShareFetch", topic=TOPIC, times=1) as fault:
            await produce(broker, b"b")
            while True:
                record = await take(consumer)
                record.accept()
                if record.value == b"b":
                    break
        assert fault.hits == 1


def test_faults_that_are_cleared_have_ended(broker: Broker) -> None:
    with broker.faults.refuse() as fault:
        broker.faults.clear()
        asyncio.run(produce(broker, b"a"))
    assert fault.hits == 0
    broker.assert_records(TOPIC, [b"a"])


@pytest.mark.parametrize(
    ("api", "error", "message"),
    [
        ("ShareFech", "REQUEST_TIMED_OUT", "There is no API ShareFech. Is ShareFetch meant?"),
        ("ShareFetch", "REQUEST_TIMEOUT", "There is no error REQUEST_TIMEOUT. Is REQUEST_TIMED_OUT meant?"),
    ],
)
def test_an_unknown_name_is_refused(broker: Broker, api: str, error: str, message: str) -> None:
    with pytest.raises(ControlError) as raised:
        broker.faults.error(error, api)
    assert str(raised.value) == message


def test_a_number_below_one_is_refused(broker: Broker) -> None:
    with pytest.raises(ControlError, match="times is 0; it must be a whole number from 1"):
        broker.faults.refuse(times=0)
