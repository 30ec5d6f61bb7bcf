"""Finding the cluster, and the group's coordinator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.errors import BrokerUnavailableError, GroupAuthorizationError
from barnabas.client.network.address import Address
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from tests.client.scripted_broker import PORT, against, answer, api_versions
from tests.client.virtual_world import TOPIC, World, virtually

BROKER, NOBODY = Address("broker", PORT), Address("broker", 1)


def cluster(*bootstrap: Address) -> Cluster:
    return Cluster(bootstrap, client_id="test", request_timeout_ms=1_000)


@virtually
async def test_the_view_is_refreshed_by_the_first_broker_that_answers(world: World) -> None:
    await world.topic(TOPIC)
    topic_id = world.topic_ids[TOPIC]
    found = cluster(NOBODY, BROKER)
    await found.refresh([topic_id])
    assert list(found.view.brokers.values()) == [BROKER]
    assert found.view.topic_name(topic_id) == TOPIC
    found.close()


@virtually
async def test_the_bootstrap_addresses_are_tried_again_when_all_others_are_gone(world: World) -> None:
    moved = cluster(BROKER)
    await moved.refresh([])
    moved.view.brokers = {1: NOBODY}
    world.cut_connections()
    await moved.refresh([])
    assert list(moved.view.brokers.values()) == [BROKER]


@virtually
async def test_every_address_that_failed_is_named(world: World) -> None:
    with pytest.raises(BrokerUnavailableError) as failed:
        await cluster(NOBODY, Address("broker", 2)).refresh([])
    assert all(address in str(failed.value) for address in ("broker:1", "broker:2"))


@virtually
async def test_the_coordinator_is_found(world: World) -> None:
    assert await cluster(BROKER).find_coordinator("group") == BROKER


def finding(*answers: ErrorCode) -> Any:
    """A broker that answers FindCoordinator with these error codes, one after another."""
    codes: Iterator[ErrorCode] = iter(answers)

    def find(version: int, _: bytes) -> bytes:
        found = {"key": "group", "host": "elsewhere", "port": 7, "error_code": next(codes)}
        return answer("find_coordinator", version, coordinators=[found])

    return {
        ApiKey.API_VERSIONS: api_versions({ApiKey.FIND_COORDINATOR: (0, 6)}),
        ApiKey.FIND_COORDINATOR: find,
    }


def test_a_missing_coordinator_is_a_temporary_error() -> None:
    async def test() -> None:
        asked = cluster(BROKER)
        with pytest.raises(BrokerUnavailableError):
            await asked.find_coordinator("group")
        assert await asked.find_coordinator("group") == Address("elsewhere", 7)

    against(finding(ErrorCode.coordinator_not_available, ErrorCode.none), test)


def test_a_group_without_authorization_is_a_lasting_error() -> None:
    async def test() -> None:
        with pytest.raises(GroupAuthorizationError):
            await cluster(BROKER).find_coordinator("group")

    against(finding(ErrorCode.group_authorization_failed), test)
