"""The responses of ConsumerGroupHeartbeat and ShareGroupHeartbeat, which differ in their classes only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from barnabas.coordinator.assignor.assignment import Assignment
from barnabas.coordinator.consumer.heartbeat import HeartbeatResult as ConsumerHeartbeatResult
from barnabas.coordinator.share_group.heartbeat import HeartbeatResult as ShareHeartbeatResult
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.primitive import i32, milliseconds

ResponseT = TypeVar("ResponseT")


class HeartbeatMessages(NamedTuple, Generic[ResponseT]):
    """The message classes of one of the APIs."""

    response: Callable[..., ResponseT]
    assignment: Callable[..., object]
    topic_partitions: Callable[..., object]

    def respond(self, result: ConsumerHeartbeatResult | ShareHeartbeatResult) -> ResponseT:
        """The response to a member of a group."""
        return self.response(
            throttle_time=milliseconds(0),
            error_code=ErrorCode.none,
            member_id=result.member_id,
            member_epoch=i32(result.member_epoch),
            heartbeat_interval=milliseconds(result.heartbeat_interval_ms),
            assignment=None if result.assignment is None else self._assignment(result.assignment),
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

    def _assignment(self, assignment: Assignment) -> object:
        return self.assignment(
            topic_partitions=tuple(
                self.topic_partitions(topic_id=topic_id, partitions=tuple(map(i32, partitions)))
                for topic_id, partitions in assignment.items()
            )
        )
