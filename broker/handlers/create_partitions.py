"""CreatePartitions (key 37, versions 0 to 3; KIP-195): adds partitions to existing topics.

The controller decides on the counts. A name that the request has twice is INVALID_REQUEST. timeout_ms is not
used: the response waits for the append. From version 3 on a quota can refuse the request (KIP-599).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from kio.schema.create_partitions.v3.request import CreatePartitionsRequest, CreatePartitionsTopic
from kio.schema.create_partitions.v3.response import CreatePartitionsResponse, CreatePartitionsTopicResult

from barnabas.broker.handlers.common.error_fields import error_fields
from barnabas.broker.network.replies import respond_to_each
from barnabas.broker.quotas.mutations import MutationCharge
from barnabas.coordinator.metadata.topic_decisions import MorePartitions
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.primitive import TopicName, milliseconds

if TYPE_CHECKING:
    from barnabas.broker.network.handler import Reply, RequestContext
    from barnabas.broker.quotas.client_quotas import ClientQuotas
    from barnabas.coordinator.metadata.controller import Controller

_REFUSED_BY_QUOTA_FROM = 3


class Parts(NamedTuple):
    metadata: Controller
    quotas: ClientQuotas


def handle_create_partitions(
    parts: Parts, context: RequestContext, request: CreatePartitionsRequest
) -> Reply:
    seen = Counter(topic.name for topic in request.topics)
    wanted = [_more_partitions(topic) for topic in request.topics if seen[topic.name] == 1]
    duplicate = ApiError(ErrorCode.invalid_request, "Duplicate topic name.")
    refused = [_result(name, duplicate) for name, count in seen.items() if count > 1]

    def respond(errors: Sequence[ApiError | None]) -> CreatePartitionsResponse:
        results = [_result(topic.name, error) for topic, error in zip(wanted, errors, strict=True)]
        throttle_time = milliseconds(charge.throttle_ms)
        return CreatePartitionsResponse(throttle_time=throttle_time, results=(*refused, *results))

    strict = context.api_version >= _REFUSED_BY_QUOTA_FROM
    charge = MutationCharge(parts.quotas, context.client_id, strict=strict)
    reply = parts.metadata.create_partitions(wanted, validate_only=request.validate_only, charge=charge)
    return respond_to_each(reply, len(wanted), respond)


def _more_partitions(topic: CreatePartitionsTopic) -> MorePartitions:
    assignments = topic.assignments
    node_ids = None if assignments is None else [assignment.broker_ids for assignment in assignments]
    return MorePartitions(topic.name, topic.count, node_ids)


def _result(name: str, error: ApiError | None) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(
        name=TopicName(name),
        **error_fields(error),
    )
