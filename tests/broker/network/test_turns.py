"""A request that names very much lets others have their turn in between, whatever it asks for."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from barnabas.broker.handlers.describe_configs import handle_describe_configs
from barnabas.broker.handlers.find_coordinator import handle_find_coordinator
from barnabas.broker.handlers.metadata import handle_metadata
from barnabas.broker.network.turns import STEPS_PER_TURN, Turns
from barnabas.coordinator.metadata.image import ResourceType
from barnabas.protocol.kio_messages import Entity
from barnabas.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequestBatch
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.primitive import TopicName, i8
from tests.broker.handlers.admin_broker import AdminBroker, ask
from tests.broker.handlers.conftest import broker as broker

LONG = 3 * STEPS_PER_TURN


class OthersTurns:
    """Counts the passes of the loop while it is entered."""

    def __init__(self) -> None:
        self.count = 0
        self._loop = asyncio.get_running_loop()
        self._next: asyncio.Handle | None = None

    def __enter__(self) -> "OthersTurns":
        self._next = self._loop.call_soon(self._count)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._next is not None
        self._next.cancel()

    def _count(self) -> None:
        self.count += 1
        self._next = self._loop.call_soon(self._count)


async def test_others_have_their_turn_once_enough_was_done() -> None:
    turns = Turns()
    with OthersTurns() as others:
        counts: list[int] = []
        for step_count in (STEPS_PER_TURN - 1, 1, STEPS_PER_TURN - 1, 1):
            await turns.took(step_count)
            counts.append(others.count)
    assert counts == [0, 1, 1, 2]


REQUESTS: dict[Callable[..., Any], Entity] = {
    handle_describe_configs: DescribeConfigsRequest(
        resources=tuple(
            DescribeConfigsResource(
                resource_type=i8(ResourceType.GROUP), resource_name=f"g{number}", configuration_keys=None
            )
            for number in range(LONG // 10)
        ),
        include_synonyms=False,
        include_documentation=False,
    ),
    handle_find_coordinator: FindCoordinatorRequestBatch(
        key_type=i8(0), coordinator_keys=tuple(f"g{number}" for number in range(LONG))
    ),
    handle_metadata: MetadataRequest(
        topics=tuple(
            MetadataRequestTopic(topic_id=None, name=TopicName(f"t{number}")) for number in range(LONG)
        ),
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=False,
    ),
}


@pytest.mark.parametrize("handler", REQUESTS, ids=lambda handler: handler.__name__)
async def test_a_long_request_is_worked_on_in_turns(broker: AdminBroker, handler: Callable[..., Any]) -> None:
    with OthersTurns() as others:
        await ask(broker, handler, REQUESTS[handler])
    assert others.count >= LONG // STEPS_PER_TURN
