"""What the APIs of the share coordinator have in common (keys 83 to 87; KIP-932, "Share coordinator").

Brokers ask them of each other, so they are served on the listener for brokers alone. A request names one
group and many partitions; each partition has its own error. One that names no group, no topic, or a topic
without partitions is answered by nothing at all, as in Kafka. COORDINATOR_NOT_AVAILABLE where share state is
not kept in its topic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from uuid import UUID

from barnabas.coordinator.share_state.share_coordinator import ShareCoordinator
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.identity import SharePartitionKey
from barnabas.runtime.completion import Completion

if TYPE_CHECKING:
    from barnabas.broker.node.broker import Broker

_NO_ID = UUID(int=0)

_Value = TypeVar("_Value")
_Result = TypeVar("_Result")


class _Partition(Protocol):
    @property
    def partition(self) -> int: ...


class _Topic(Protocol):
    @property
    def topic_id(self) -> UUID | None: ...

    @property
    def partitions(self) -> Sequence[Any]: ...


class _Request(Protocol):
    @property
    def group_id(self) -> str: ...

    @property
    def topics(self) -> Sequence[_Topic]: ...


async def ask_each(
    broker: Broker,
    request: _Request,
    ask: Callable[[ShareCoordinator, SharePartitionKey, Any], Completion[_Value]],
    answer: Callable[[Any, _Value | ApiError], Any],
    result: Callable[..., _Result],
) -> tuple[_Result, ...]:
    """`ask` the coordinator about every partition at once, then `answer` each of what came of it; a `result`
    for each topic, its partitions in the order asked for.
    """
    if not request.group_id or not request.topics or any(not topic.partitions for topic in request.topics):
        return ()
    asked = [
        (topic.topic_id or _NO_ID, one, _begun(broker, _key(request, topic, one), one, ask))
        for topic in request.topics
        for one in topic.partitions
    ]
    answers: dict[UUID, list[Any]] = {}
    for topic_id, one, reply in asked:
        answers.setdefault(topic_id, []).append(answer(one, await _outcome(reply)))
    return tuple(result(topic_id=topic_id, partitions=tuple(each)) for topic_id, each in answers.items())


def _key(request: _Request, topic: _Topic, one: _Partition) -> SharePartitionKey:
    return SharePartitionKey(request.group_id, topic.topic_id or _NO_ID, one.partition)


def _begun(
    broker: Broker,
    key: SharePartitionKey,
    partition: _Partition,
    ask: Callable[[ShareCoordinator, SharePartitionKey, Any], Completion[_Value]],
) -> Completion[_Value]:
    if broker.share_state is not None:
        return ask(broker.share_state.coordinator, key, partition)
    refused: Completion[_Value] = Completion()
    message = "Share state is kept in the partitions' own logs."
    refused.fail(ApiError(ErrorCode.coordinator_not_available, message))
    return refused


async def _outcome(reply: Completion[Any]) -> Any:
    try:
        return await reply
    except ApiError as error:
        return error


def error_fields(outcome: object) -> dict[str, Any]:
    """`error_code` and `error_message` of an answer."""
    if isinstance(outcome, ApiError):
        return {"error_code": outcome.code, "error_message": outcome.message}
    return {"error_code": ErrorCode.none}
