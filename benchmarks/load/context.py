"""The context of every client of the load: the address of the broker, the topics, the samples."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from barnabas.protocol.errors import ErrorCode
from benchmarks.load.samples import Samples
from benchmarks.load.wire import Connection

FETCH_WAIT_MS = 500
FETCH_MIN_BYTES = 1
FETCH_MAX_BYTES = 50 << 20
REBALANCE_TIMEOUT_MS = 300_000
COMMIT_SECONDS = 5.0

PAUSE_SECONDS = 0.1
ATTEMPTS = 300
"""How often a broker that is not ready is asked again, with this pause between the tries."""

_NOT_READY = (
    ErrorCode.coordinator_load_in_progress,
    ErrorCode.coordinator_not_available,
    ErrorCode.not_coordinator,
)
_GROUP_KEY = 0


@dataclass(frozen=True)
class Topic:
    """A topic with the number of its partitions."""

    name: str
    topic_id: UUID
    partition_count: int


@dataclass(frozen=True)
class Load:
    """One run against one broker."""

    address: str
    samples: Samples


def check(code: int, subject: str) -> None:
    """Raises RuntimeError for an error code."""
    if code != 0:
        raise RuntimeError(f"{subject}: {ErrorCode(code).name}")


async def described_topics(
    connection: Connection, names: Sequence[str], *, pause_seconds: float = PAUSE_SECONDS
) -> list[Topic]:
    """The topics, as soon as the broker knows all of them."""
    wanted = [{"name": name, "topic_id": None} for name in names]
    while True:
        response = await connection.ask("metadata", 13, topics=wanted)
        errors = {topic.error_code for topic in response.topics} - {ErrorCode.none}
        if not errors:
            return [Topic(each.name, each.topic_id, len(each.partitions)) for each in response.topics]
        if errors != {ErrorCode.unknown_topic_or_partition}:
            check(errors.pop(), "metadata")
        await asyncio.sleep(pause_seconds)


async def connect_to_coordinator(address: str, group: str) -> Connection:
    """A connection to the group's coordinator, after FindCoordinator, which every client sends first."""
    connection = await Connection.open(address)
    values = {"key_type": _GROUP_KEY, "coordinator_keys": [group]}
    for _ in range(ATTEMPTS):
        (found,) = (await connection.ask("find_coordinator", 6, **values)).coordinators
        if found.error_code not in _NOT_READY:
            check(found.error_code, "find_coordinator")
            return connection
        await asyncio.sleep(PAUSE_SECONDS)
    raise RuntimeError(f"{group} has no coordinator")


async def ask_coordinator(connection: Connection, api: str, version: int, **values: Any) -> Any:
    """The first response without an error of a coordinator that is not ready."""
    for _ in range(ATTEMPTS):
        response = await connection.ask(api, version, **values)
        if response.error_code not in _NOT_READY:
            return response
        await asyncio.sleep(PAUSE_SECONDS)
    raise RuntimeError(f"{api}: the coordinator does not become ready")


async def send_heartbeat(load: Load, coordinator: Connection, api: str, **values: Any) -> Any:
    """The answer to a heartbeat (version 1) in a group whose broker assigns; samples its duration."""
    begin = time.perf_counter()
    response = await ask_coordinator(coordinator, api, 1, **values)
    load.samples.note("heartbeat", begin)
    check(response.error_code, api)
    return response
