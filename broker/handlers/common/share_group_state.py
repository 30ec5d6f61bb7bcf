"""The common parts of the share coordinator's APIs (keys 83 to 87; KIP-932, "Share coordinator").

Only the listener for brokers serves them. A request names one group and many partitions; each partition has
its own error, which is COORDINATOR_NOT_AVAILABLE if share state is not kept in its topic. The response has no
results if the request names no group or no topic, or a topic without partitions, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar
from uuid import UUID

from barnabas.coordinator.share_state.share_coordinator import ShareCoordinator
from barnabas.protocol.errors import ApiError, ErrorCode, without_frames
from barnabas.protocol.identity import SharePartitionKey
from barnabas.runtime.clock import Clock, WallMs
from barnabas.runtime.completion import Completion

if TYPE_CHECKING:
    from barnabas.broker.internal_topics.share_state_topic import ShareStateTopic

_NO_ID = UUID(int=0)


class _Partition(Protocol):
    @property
    def partition(self) -> int: ...


ValueT = TypeVar("ValueT")
ResultT = TypeVar("ResultT")
PartitionT = TypeVar("PartitionT", bound=_Partition)
PartitionT_co = TypeVar("PartitionT_co", bound=_Partition, covariant=True)


class _Topic(Protocol[PartitionT_co]):
    @property
    def topic_id(self) -> UUID | None: ...

    @property
    def partitions(self) -> Sequence[PartitionT_co]: ...


class _Request(Protocol[PartitionT_co]):
    @property
    def group_id(self) -> str: ...

    @property
    def topics(self) -> Sequence[_Topic[PartitionT_co]]: ...


Ask = Callable[[ShareCoordinator, SharePartitionKey, PartitionT, WallMs], Completion[ValueT]]
"""From a partition of the request to the reply of the coordinator."""


async def ask_each(
    share_state: ShareStateTopic | None,
    clock: Clock,
    request: _Request[PartitionT],
    ask: Ask[PartitionT, ValueT],
    answer: Callable[[PartitionT, ValueT | ApiError], object],
    result: Callable[..., ResultT],
) -> tuple[ResultT, ...]:
    """Asks the coordinator about all partitions at once, then waits for its replies.

    Returns a `result` for each topic, with the `answer` for each of its partitions in the request's order.
    """
    if not request.group_id or not request.topics or any(not topic.partitions for topic in request.topics):
        return ()
    asked = [
        (SharePartitionKey(request.group_id, topic.topic_id or _NO_ID, partition.partition), partition)
        for topic in request.topics
        for partition in topic.partitions
    ]
    replies = [_ask(share_state, clock, key, partition, ask) for key, partition in asked]
    answers: dict[UUID, list[object]] = {}
    for (key, partition), reply in zip(asked, replies, strict=True):
        outcome = await _value_or_error(reply)
        answers.setdefault(key.topic_id, []).append(answer(partition, outcome))
    return tuple(
        result(topic_id=topic_id, partitions=tuple(partitions)) for topic_id, partitions in answers.items()
    )


def _ask(
    share_state: ShareStateTopic | None,
    clock: Clock,
    key: SharePartitionKey,
    partition: PartitionT,
    ask: Ask[PartitionT, ValueT],
) -> Completion[ValueT]:
    if share_state is not None:
        return ask(share_state.coordinator, key, partition, clock.wall_ms())
    message = "Share state is kept in the partitions' own logs."
    refused: Completion[ValueT] = Completion()
    refused.fail(ApiError(ErrorCode.coordinator_not_available, message))
    return refused


async def _value_or_error(reply: Completion[ValueT]) -> ValueT | ApiError:
    try:
        return await reply
    except ApiError as error:
        return without_frames(error)
