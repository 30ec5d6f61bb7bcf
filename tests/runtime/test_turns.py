"""A request of any API with very many names is worked on in turns; a small one is answered at once."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, cast

import pytest
from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.metadata.v13.request import MetadataRequest, MetadataRequestTopic

from barnabas.broker.handlers.describe_configs import handle_describe_configs
from barnabas.broker.handlers.find_coordinator import handle_find_coordinator
from barnabas.broker.handlers.metadata import handle_metadata
from barnabas.coordinator.metadata.image import ResourceType
from barnabas.protocol.kio_messages import Entity
from barnabas.protocol.primitive import TopicName, i8
from barnabas.runtime.turns import STEPS_PER_TURN, ReadTurns, Turns, in_turns
from tests.broker.handlers.admin_broker import AdminBroker, ask
from tests.broker.handlers.conftest import broker as broker
from tests.conformance.harness import Lab, open_lab

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


async def counted(step_count: int) -> int:
    turns = Turns()
    for _ in range(step_count):
        await turns.took(1)
    return step_count


async def test_short_work_is_done_at_once_and_needs_no_task() -> None:
    assert in_turns(counted(STEPS_PER_TURN - 1)) == STEPS_PER_TURN - 1


async def test_long_work_begins_at_once_and_continues_in_later_turns() -> None:
    work = in_turns(counted(LONG))
    assert isinstance(work, asyncio.Future)
    with OthersTurns() as others:
        assert await work == LONG
    assert others.count >= LONG // STEPS_PER_TURN


async def test_an_error_in_the_first_turn_is_raised_at_once() -> None:
    async def fails() -> None:
        raise LookupError

    with pytest.raises(LookupError):
        in_turns(fails())


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
    handle_find_coordinator: FindCoordinatorRequest(
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


@pytest.fixture
async def lab() -> AsyncIterator[Lab]:
    async with open_lab() as lab:
        yield lab


def named(api: str, count: int) -> tuple[int, dict[str, Any]]:
    """The version and the fields of a request that names `count` groups, topics or partitions."""
    match api:
        case "describe_groups":
            return 6, {"groups": [f"g{number}" for number in range(count)]}
        case "list_offsets":
            partitions = [{"partition_index": number, "timestamp": -1} for number in range(count)]
            return 11, {"topics": [{"name": "t", "partitions": partitions}]}
        case _:
            topics = [{"name": "t", "partition_indexes": list(range(count))}]
            return 9, {"groups": [{"group_id": "g", "topics": topics}]}


LONG_API = pytest.mark.parametrize("api", ["describe_groups", "list_offsets", "offset_fetch"])


@LONG_API
async def test_a_request_with_many_names_is_read_and_answered_in_turns(lab: Lab, api: str) -> None:
    version, fields = named(api, LONG)
    with OthersTurns() as others:
        response = await lab.admin.ask(api, version, **fields)
    # Each element takes more than one step to be made, and one more to be encoded.
    assert others.count >= 2 * LONG // STEPS_PER_TURN
    assert len(elements(response)) == LONG


@LONG_API
async def test_a_request_with_few_names_is_answered_at_once(lab: Lab, api: str) -> None:
    version, fields = named(api, 10)
    with OthersTurns() as others:
        pending = lab.admin.send(api, version, **fields)
        assert pending.done
        small = pending.response()
    assert others.count == 0
    version, fields = named(api, LONG)
    large = await lab.admin.ask(api, version, **fields)
    assert elements(large)[: len(elements(small))] == elements(small)


async def test_offsets_belong_to_the_requested_topics_even_if_those_change_meanwhile(
    lab: Lab,
) -> None:
    asked = [await lab.create_topic(name) for name in ("large", "small")]
    commit = [
        {"topic_id": one, "partitions": [{"partition_index": 0, "committed_offset": 7}]} for one in asked
    ]
    await lab.admin.ask("offset_commit", 10, group_id="g", member_id="", topics=commit)
    wanted = [
        {"topic_id": asked[0], "partition_indexes": [0] * STEPS_PER_TURN},
        {"topic_id": asked[1], "partition_indexes": [0]},
    ]
    waiting = lab.admin.send("offset_fetch", 10, groups=[{"group_id": "g", "topics": wanted}])
    assert not waiting.done
    await lab.admin.ask("delete_topics", topics=[{"name": "small", "topic_id": None}])
    await lab.create_topic("small")
    topics = (await lab.answered(waiting)).groups[0].topics
    assert [one.topic_id for one in topics] == asked
    assert [one.partitions[0].committed_offset for one in topics] == [7, 7]


def elements(response: Any) -> Sequence[Any]:
    """The entries of a response of any of these APIs."""
    if hasattr(response, "groups") and hasattr(response.groups[0], "group_state"):
        return cast("Sequence[Any]", response.groups)
    topics = response.groups[0].topics if hasattr(response, "groups") else response.topics
    return cast("Sequence[Any]", topics[0].partitions)


async def test_requests_share_the_bytes_that_a_pass_of_the_loop_reads() -> None:
    read_turns, passes = ReadTurns(), list[int]()

    async def work(others: OthersTurns) -> None:
        await read_turns.wait(Turns())
        read_turns.read(3 * 1024 * 1024)
        passes.append(others.count)

    with OthersTurns() as others:
        await asyncio.gather(*(work(others) for _ in range(5)))
    assert list(Counter(passes).values()) == [2, 2, 1]
