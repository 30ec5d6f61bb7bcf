"""DeleteShareGroupState (key 86, version 0; KIP-932): deletes the state of share partitions.

Deleting a state that does not exist succeeds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kio.schema.delete_share_group_state.v0.request import DeleteShareGroupStateRequest, PartitionData
from kio.schema.delete_share_group_state.v0.response import (
    DeleteShareGroupStateResponse,
    DeleteStateResult,
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


async def handle_delete_share_group_state(
    parts: Parts, context: RequestContext, request: DeleteShareGroupStateRequest
) -> DeleteShareGroupStateResponse:
    results = await ask_each(parts.share_state, parts.clock, request, _delete, _answer, DeleteStateResult)
    return DeleteShareGroupStateResponse(results=results)


def _delete(
    coordinator: ShareCoordinator, key: SharePartitionKey, asked: PartitionData, now_ms: WallMs
) -> Completion[None]:
    return coordinator.delete(key)


def _answer(asked: PartitionData, outcome: ApiError | None) -> PartitionResult:
    return PartitionResult(partition=asked.partition, **error_fields(outcome))
