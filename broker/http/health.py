"""Health over HTTP, for an orchestrator: `/healthz` (the process lives) and `/readyz` (it can serve clients).

The broker is not ready in the states in which no client can be served well: the disk is full, as for
`barnabas healthcheck`, the metadata log failed, or groups are still being loaded. States that concern single
partitions are warnings: taking the broker away from all clients would not help them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct
from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from barnabas.broker.http.problem import Problem, problem_response
from barnabas.broker.http.routes import Call, Operation, json_response, without_parameters

if TYPE_CHECKING:
    from barnabas.broker.node.broker import Broker
    from barnabas.share.leader.share_partition_leader import SharePartitionLeader


LIVENESS_PATH: Final = "/healthz"
READINESS_PATH: Final = "/readyz"


class HealthChecks:
    """The part of an application that answers health checks, for a connection that may ask for nothing else
    (503). It closes the connection after the answer.
    """

    def __init__(self, application: ASGIApp) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_the_last(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["Connection"] = "close"
            await send(message)

        if scope["path"] in (LIVENESS_PATH, READINESS_PATH):
            await self._application(scope, receive, send_the_last)
        else:
            await problem_response(_TOO_MANY)(scope, receive, send_the_last)


_TOO_MANY: Final = Problem(
    HTTPStatus.SERVICE_UNAVAILABLE, "The server has too many connections. Only health checks are answered."
)


class Alive(Struct):
    """The process answers."""

    status: Literal["alive"] = "alive"


class Finding(Struct):
    """A state that needs attention."""

    state: str
    """`disk full`, `metadata log failed`, `groups loading`, `partitions offline`, `dead letters stalled`,
    `delayed records stalled`.
    """
    detail: str


class Readiness(Struct):
    """`ready` with status 200, even with warnings; `not ready` with 503, and then with failures."""

    status: Literal["ready", "not ready"]
    failures: Sequence[Finding] = ()
    warnings: Sequence[Finding] = ()


class HealthRoutes:
    """The two operations."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def operations(self) -> Sequence[Operation]:
        return (
            Operation(
                path=LIVENESS_PATH,
                handler=without_parameters(self._live),
                name="getLiveness",
                summary="Whether the process answers",
                tag="health",
                answer=Alive,
            ),
            Operation(
                path=READINESS_PATH,
                handler=without_parameters(self._ready),
                name="getReadiness",
                summary="Whether the broker can serve clients: 503 if it cannot",
                tag="health",
                answer=Readiness,
                failures=(HTTPStatus.SERVICE_UNAVAILABLE,),
            ),
        )

    async def _live(self, _: Call) -> Alive:
        return Alive()

    async def _ready(self, _: Call) -> Response:
        readiness = look(self._broker)
        is_ready = readiness.status == "ready"
        return json_response(readiness, HTTPStatus.OK if is_ready else HTTPStatus.SERVICE_UNAVAILABLE)


def look(broker: Broker) -> Readiness:
    """The state of the broker now."""
    failures, warnings = tuple(_failures(broker)), tuple(_warnings(broker))
    return Readiness("not ready" if failures else "ready", failures, warnings)


def _failures(broker: Broker) -> Iterator[Finding]:
    if broker.log_directory.full_disk.is_full:
        yield Finding("disk full", f"Free space on the file system of {broker.log_directory.path}.")
    if broker.failed.done():
        yield Finding("metadata log failed", str(broker.failed.result()))
    if not broker.groups.operations.all_loaded:
        yield Finding(
            "groups loading", "Partitions of __consumer_offsets cannot be used yet; the log says why."
        )


def _warnings(broker: Broker) -> Iterator[Finding]:
    offline = broker.log_directory.offline_logs
    if offline:
        example = min(offline).directory_name
        yield Finding("partitions offline", f"{len(offline)} after an error of the disk, such as {example}.")
    without_letters = _groups_where(broker, broker.dead_letters.is_stalled)
    if without_letters:
        yield Finding(
            "dead letters stalled",
            f"They cannot be written, and hold up {_such_as(without_letters)}.",
        )
    full_of_delayed = _groups_where(broker, lambda leader: leader.is_full_of_delayed)
    if full_of_delayed:
        yield Finding(
            "delayed records stalled",
            f"share.delayed.records.max is reached, and no further records are read for "
            f"{_such_as(full_of_delayed)}.",
        )


def _groups_where(broker: Broker, concerns: Callable[[SharePartitionLeader], bool]) -> set[str]:
    return {leader.group_id for leader in broker.share_partitions if concerns(leader)}


def _such_as(group_ids: set[str]) -> str:
    return f"{len(group_ids)} share groups, such as {min(group_ids)}"
