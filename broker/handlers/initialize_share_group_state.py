"""InitializeShareGroupState (key 83, version 0; KIP-932): creates or resets share state.

A state epoch below the one of the last initialisation is FENCED_STATE_EPOCH.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kio.schema.initialize_share_group_state.v0.request import InitializeShareGroupStateRequest, PartitionData
from kio.schema.initialize_share_group_state.v0.response import (
    InitializeShareGroupStateResponse,
    InitializeStateResult,
    PartitionResult,
)

from barnabas.broker.handlers.common.error_fields import error_fields
from barnabas.broker.handlers.common.share_group_state import ask_each
from barnabas.broker.network.handler import RequestContext
from barnabas.coordinator.share_state.share_coordinator import ShareCoordinator
from barnabas.protocol.errors import ApiError
from barnabas.protocol.identity import SharePartitionKey
from barnabas.runtime.clock import WallMs
from barnabas.runtime.completion import Completion

if TYPE_CHECKING:
    from barnabas.broker.internal_topics.share_state_topic import ShareStateTopic
    from barnabas.runtime.clock import Clock


class Parts(NamedTuple):
    clock: Clock
    share_state: ShareStateTopic | None


async def handle_initialize_share_group_state(
    parts: Parts, context: RequestContext, request: InitializeShareGroupStateRequest
) -> InitializeShareGroupStateResponse:
    results = await ask_each(
        parts.share_state, parts.clock, request, _initialise, _answer, InitializeStateResult
    )
    return InitializeShareGroupStateResponse(results=results)


def _initialise(
    coordinator: ShareCoordinator, key: SharePartitionKey, asked: PartitionData, now_ms: WallMs
) -> Completion[None]:
    return coordinator.initialise(
        key, state_epoch=asked.state_epoch, start_offset=asked.start_offset, now_ms=now_ms
    )


def _answer(asked: PartitionData, outcome: ApiError | None) -> PartitionResult:
    return PartitionResult(partition=asked.partition, **error_fields(outcome))
