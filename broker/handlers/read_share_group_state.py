"""ReadShareGroupState (key 84, version 0; KIP-932): the state of share partitions, for their new leaders.

A higher leader epoch is stored; a lower one is FENCED_LEADER_EPOCH. INVALID_REQUEST before the state is
initialised.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kio.schema.read_share_group_state.v0.request import PartitionData, ReadShareGroupStateRequest
from kio.schema.read_share_group_state.v0.response import (
    PartitionResult,
    ReadShareGroupStateResponse,
    ReadStateResult,
    StateBatch,
)

from barnabas.broker.handlers.common.error_fields import error_fields
from barnabas.broker.handlers.common.share_group_state import ask_each
from barnabas.broker.network.handler import RequestContext
from barnabas.coordinator.share_state.share_coordinator import ShareCoordinator
from barnabas.protocol.errors import ApiError
from barnabas.protocol.identity import SharePartitionKey
from barnabas.protocol.primitive import i8, i16, i32, i64
from barnabas.runtime.clock import WallMs
from barnabas.runtime.completion import Completion
from barnabas.storage.format.share_partition_state import SharePartitionState

if TYPE_CHECKING:
    from barnabas.broker.internal_topics.share_state_topic import ShareStateTopic
    from barnabas.runtime.clock import Clock


class Parts(NamedTuple):
    clock: Clock
    share_state: ShareStateTopic | None


async def handle_read_share_group_state(
    parts: Parts, context: RequestContext, request: ReadShareGroupStateRequest
) -> ReadShareGroupStateResponse:
    results = await ask_each(parts.share_state, parts.clock, request, _read, _answer, ReadStateResult)
    return ReadShareGroupStateResponse(results=results)


def _read(
    coordinator: ShareCoordinator, key: SharePartitionKey, asked: PartitionData, now_ms: WallMs
) -> Completion[SharePartitionState]:
    return coordinator.read(key, leader_epoch=asked.leader_epoch, now_ms=now_ms)


def _answer(asked: PartitionData, outcome: SharePartitionState | ApiError) -> PartitionResult:
    state, error = (None, outcome) if isinstance(outcome, ApiError) else (outcome, None)
    return PartitionResult(
        partition=asked.partition,
        state_epoch=i32(0 if state is None else state.state_epoch),
        start_offset=i64(0 if state is None else state.start_offset),
        state_batches=tuple(
            StateBatch(
                first_offset=i64(batch.first_offset),
                last_offset=i64(batch.last_offset),
                delivery_state=i8(batch.delivery_state),
                delivery_count=i16(batch.delivery_count),
            )
            for batch in (() if state is None else state.state_batches)
        ),
        **error_fields(error),
    )
