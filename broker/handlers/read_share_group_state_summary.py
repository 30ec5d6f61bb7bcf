"""ReadShareGroupStateSummary (key 87, versions 0 and 1; KIP-932, KIP-1226): a summary of share state.

The summary is the start offset and the number of final records from there on. No leader epoch is fenced. A
state that was never initialised has an undecided start offset.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kio.schema.read_share_group_state_summary.v1.request import (
    PartitionData,
    ReadShareGroupStateSummaryRequest,
)
from kio.schema.read_share_group_state_summary.v1.response import (
    PartitionResult,
    ReadShareGroupStateSummaryResponse,
    ReadStateSummaryResult,
)

from barnabas.broker.handlers.common.error_fields import error_fields
from barnabas.broker.handlers.common.share_group_state import ask_each
from barnabas.broker.network.handler import RequestContext
from barnabas.coordinator.share_state.share_coordinator import ShareCoordinator
from barnabas.protocol.errors import ApiError
from barnabas.protocol.identity import SharePartitionKey
from barnabas.protocol.primitive import i32, i64
from barnabas.runtime.clock import WallMs
from barnabas.runtime.completion import Completion
from barnabas.storage.format.share_partition_state import (
    UNDECIDED_OFFSET,
    UNKNOWN_COUNT,
    SharePartitionState,
)

if TYPE_CHECKING:
    from barnabas.broker.internal_topics.share_state_topic import ShareStateTopic
    from barnabas.runtime.clock import Clock


class Parts(NamedTuple):
    clock: Clock
    share_state: ShareStateTopic | None


async def handle_read_share_group_state_summary(
    parts: Parts, context: RequestContext, request: ReadShareGroupStateSummaryRequest
) -> ReadShareGroupStateSummaryResponse:
    results = await ask_each(
        parts.share_state, parts.clock, request, _read_summary, _answer, ReadStateSummaryResult
    )
    return ReadShareGroupStateSummaryResponse(results=results)


def _read_summary(
    coordinator: ShareCoordinator, key: SharePartitionKey, asked: PartitionData, now_ms: WallMs
) -> Completion[SharePartitionState | None]:
    return coordinator.read_summary(key)


def _answer(asked: PartitionData, outcome: SharePartitionState | ApiError | None) -> PartitionResult:
    if isinstance(outcome, SharePartitionState):
        return _result(
            asked,
            outcome.start_offset,
            outcome.delivery_complete_count,
            outcome.leader_epoch,
            outcome.state_epoch,
        )
    start_offset = UNDECIDED_OFFSET if outcome is None else 0
    return _result(asked, start_offset, UNKNOWN_COUNT, 0, 0, outcome)


def _result(
    asked: PartitionData,
    start_offset: int,
    delivery_complete_count: int,
    leader_epoch: int,
    state_epoch: int,
    error: ApiError | None = None,
) -> PartitionResult:
    return PartitionResult(
        partition=asked.partition,
        state_epoch=i32(state_epoch),
        leader_epoch=i32(leader_epoch),
        start_offset=i64(start_offset),
        delivery_complete_count=i32(delivery_complete_count),
        **error_fields(error),
    )
