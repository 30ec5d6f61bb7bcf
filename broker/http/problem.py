"""Errors of HTTP in the form of RFC 9457, "Problem Details for HTTP APIs"."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from types import MappingProxyType

from msgspec import Struct, json
from starlette.responses import Response

from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.storage.errors import StorageError

PROBLEM_TYPE = "application/problem+json"
_NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class ProblemDetails(Struct, omit_defaults=True):
    """The body of each error."""

    title: str
    """The name of the status."""
    status: int
    detail: str
    """The reason, and the remedy if there is one."""
    type: str = "about:blank"
    kafka_error: str | None = None
    """The name of Kafka's error, such as UNKNOWN_TOPIC_OR_PARTITION, if a part of the broker refused."""


class Problem(Exception):  # noqa: N818  the name of RFC 9457
    """The request is answered with this error."""

    def __init__(
        self,
        status: HTTPStatus,
        detail: str,
        *,
        kafka_error: str | None = None,
        headers: Mapping[str, str] = _NO_HEADERS,
    ) -> None:
        super().__init__(status, detail)
        self.details = ProblemDetails(status.phrase, status.value, detail, kafka_error=kafka_error)
        self.headers = headers


_STATUSES: Mapping[ErrorCode, HTTPStatus] = {
    ErrorCode.unknown_topic_or_partition: HTTPStatus.NOT_FOUND,
    ErrorCode.unknown_topic_id: HTTPStatus.NOT_FOUND,
    ErrorCode.group_id_not_found: HTTPStatus.NOT_FOUND,
    ErrorCode.resource_not_found: HTTPStatus.NOT_FOUND,
    ErrorCode.invalid_request: HTTPStatus.BAD_REQUEST,
    ErrorCode.invalid_group_id: HTTPStatus.BAD_REQUEST,
    ErrorCode.invalid_config: HTTPStatus.BAD_REQUEST,
    ErrorCode.invalid_partitions: HTTPStatus.BAD_REQUEST,
    ErrorCode.invalid_replication_factor: HTTPStatus.BAD_REQUEST,
    ErrorCode.invalid_topic_exception: HTTPStatus.BAD_REQUEST,
    ErrorCode.offset_out_of_range: HTTPStatus.BAD_REQUEST,
    ErrorCode.invalid_record_state: HTTPStatus.CONFLICT,
    ErrorCode.topic_already_exists: HTTPStatus.CONFLICT,
    ErrorCode.non_empty_group: HTTPStatus.CONFLICT,
    ErrorCode.policy_violation: HTTPStatus.CONFLICT,
    ErrorCode.topic_deletion_disabled: HTTPStatus.CONFLICT,
    ErrorCode.unsupported_version: HTTPStatus.CONFLICT,
    ErrorCode.coordinator_load_in_progress: HTTPStatus.SERVICE_UNAVAILABLE,
    ErrorCode.coordinator_not_available: HTTPStatus.SERVICE_UNAVAILABLE,
    ErrorCode.kafka_storage_error: HTTPStatus.SERVICE_UNAVAILABLE,
    ErrorCode.not_leader_or_follower: HTTPStatus.SERVICE_UNAVAILABLE,
    ErrorCode.request_timed_out: HTTPStatus.SERVICE_UNAVAILABLE,
}
"""Any other error is 500."""


def problem_of(error: ApiError | StorageError) -> Problem:
    """The refusal by a part of the broker as an error of HTTP."""
    message = error.message if isinstance(error, ApiError) else str(error)
    name = error.code.name.upper()
    status = _STATUSES.get(error.code, HTTPStatus.INTERNAL_SERVER_ERROR)
    return Problem(status, message or f"The broker refused with {name}.", kafka_error=name)


def problem_response(problem: Problem) -> Response:
    """The response with the problem's body, status and headers."""
    return Response(
        json.encode(problem.details),
        problem.details.status,
        dict(problem.headers),
        media_type=PROBLEM_TYPE,
    )
