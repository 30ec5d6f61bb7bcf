"""The responses of ConsumerGroupHeartbeat and ShareGroupHeartbeat, which differ in their classes only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar
from uuid import UUID

from barnabas.coordinator.assignor.assignment import Assignment
from barnabas.coordinator.consumer.heartbeat import HeartbeatResult as ConsumerHeartbeatResult
from barnabas.coordinator.share_group.heartbeat import HeartbeatResult as ShareHeartbeatResult
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.primitive import i32, milliseconds, trusted_i32

ResponseT = TypeVar("ResponseT")
ResultT = TypeVar("ResultT", ConsumerHeartbeatResult, ShareHeartbeatResult)


@dataclass(frozen=True, slots=True)
class HeartbeatMessages(Generic[ResponseT, ResultT]):
    """The message classes of one of the APIs."""

    response: Callable[..., ResponseT]
    assignment: Callable[..., object]
    topic_partitions: Callable[[ResultT, UUID, tuple[i32, ...]], object]
    """One topic of the assignment in a result."""

    def respond(self, result: ResultT) -> ResponseT:
        """The response to a member of a group."""
        return self.response(
            throttle_time=milliseconds(0),
            error_code=ErrorCode.none,
            member_id=result.member_id,
            member_epoch=trusted_i32(result.member_epoch),
            heartbeat_interval=milliseconds(result.heartbeat_interval_ms),
            assignment=None if result.assignment is None else self._assignment(result, result.assignment),
        )

    def refuse(self, error: ApiError) -> ResponseT:
        """The response to a heartbeat that is an error."""
        return self.response(
            throttle_time=milliseconds(0),
            error_code=error.code,
            error_message=error.message,
            member_epoch=i32(0),
            heartbeat_interval=milliseconds(0),
        )

    def _assignment(self, result: ResultT, assignment: Assignment) -> object:
        return self.assignment(
            topic_partitions=tuple(
                self.topic_partitions(result, topic_id, tuple(map(i32, partitions)))
                for topic_id, partitions in assignment.items()
            )
        )
