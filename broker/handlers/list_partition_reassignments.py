"""ListPartitionReassignments (key 46, version 0; KIP-455): the reassignments under way; one node has none."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kio.schema.list_partition_reassignments.v0.request import ListPartitionReassignmentsRequest
from kio.schema.list_partition_reassignments.v0.response import ListPartitionReassignmentsResponse

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.primitive import milliseconds

if TYPE_CHECKING:
    from barnabas.broker.network.handler import Reply, RequestContext


class Parts(NamedTuple):
    """Nothing: there are no reassignments."""


def handle_list_partition_reassignments(
    parts: Parts, context: RequestContext, request: ListPartitionReassignmentsRequest
) -> Reply:
    return ListPartitionReassignmentsResponse(
        throttle_time=milliseconds(0), error_code=ErrorCode.none, error_message=None, topics=()
    )
