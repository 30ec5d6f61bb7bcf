"""WriteShareGroupState (key 85, versions 0 and 1; KIP-932, KIP-1226): stores the changes of share partitions.

INVALID_REQUEST before the state is initialised. A former leader gets FENCED_LEADER_EPOCH or
FENCED_STATE_EPOCH. Version 0 lacks the number of final records, which is then unknown (-1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kio.schema.write_share_group_state.v1.request import PartitionData, WriteShareGroupStateRequest
from kio.schema.write_share_group_state.v1.response import (
    PartitionResult,
    WriteShareGroupStateResponse,
    WriteStateResult,
)

from barnabas.broker.handlers.common.error_fields import error_fields
from barnabas.broker.handlers.common.share_group_state import ask_each
from barnabas.broker.network.handler import RequestContext
from barnabas.coordinator.share_state.share_coordinator import ShareCoordinator
from barnabas.protocol.errors import ApiError
from barnabas.protocol.identity import SharePartitionKey
from barnabas.runtime.clock import WallMs
from barnabas.runtime.completion import Completion
from barnabas.storage.format.share_partition_state import StateWrite
from barnabas.storage.format.state_batches import StateBatch

if TYPE_CHECKING:
    from barnabas.broker.internal_topics.share_state_topic import ShareStateTopic
    from barnabas.runtime.clock import Clock


class Parts(NamedTuple):
    clock: Clock
    share_state: ShareStateTopic | None


async def handle_write_share_group_state(
    parts: Parts, context: RequestContext, request: WriteShareGroupStateRequest
) -> WriteShareGroupStateResponse:
    results = await ask_each(parts.share_state, parts.clock, request, _write, _answer, WriteStateResult)
    return WriteShareGroupStateResponse(results=results)


def _write(
    coordinator: ShareCoordinator, key: SharePartitionKey, asked: PartitionData, now_ms: WallMs
) -> Completion[None]:
    write = StateWrite(
        state_epoch=asked.state_epoch,
        leader_epoch=asked.leader_epoch,
        start_offset=asked.start_offset,
        delivery_complete_count=asked.delivery_complete_count,
        state_batches=[
            StateBatch(batch.first_offset, batch.last_offset, batch.delivery_count, batch.delivery_state)
            for batch in asked.state_batches
        ],
    )
    return coordinator.write(key, write, now_ms=now_ms)


def _answer(asked: PartitionData, outcome: ApiError | None) -> PartitionResult:
    return PartitionResult(partition=asked.partition, **error_fields(outcome))
