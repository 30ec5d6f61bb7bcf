"""The positions of a share group, asked by a client that is no member, against the real broker."""

from __future__ import annotations

import pytest

from barnabas.client import (
    BrokerUnavailableError,
    MisuseError,
    ShareGroupAdmin,
    SharePosition,
    TopicPartition,
)
from barnabas.client.cluster.client_options import ClientOptions
from tests.client.virtual_world import GROUP, TOPIC, World, virtually

BOOTSTRAP = "broker:9092"


@virtually
async def test_the_lag_has_the_records_that_are_not_done(world: World) -> None:
    await world.topic(TOPIC, "a", "b", "c")
    await world.group()
    async with world.consumer() as consumer, ShareGroupAdmin(BOOTSTRAP, group=GROUP) as admin:
        records = await consumer.poll(timeout=10.0)
        assert await admin.positions() == {TopicPartition(TOPIC, 0): SharePosition(0, 3)}
        records[0].accept()
        await consumer.commit()
        assert await admin.positions() == {TopicPartition(TOPIC, 0): SharePosition(1, 2)}


@virtually
async def test_an_unknown_group_has_no_positions(world: World) -> None:
    await world.topic(TOPIC)
    async with ShareGroupAdmin(BOOTSTRAP, group="unknown") as admin:
        assert await admin.positions() == {}


def test_an_empty_name_is_refused() -> None:
    with pytest.raises(MisuseError):
        ShareGroupAdmin(BOOTSTRAP, group="")


@virtually
async def test_without_a_broker_the_start_fails(world: World) -> None:
    options: ClientOptions = {"connect_timeout_ms": 1_000}
    with pytest.raises(BrokerUnavailableError):
        async with ShareGroupAdmin("broker:1", group=GROUP, **options):
            raise AssertionError("there is no broker")
