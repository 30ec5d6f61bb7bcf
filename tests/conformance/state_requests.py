"""Requests to the share coordinator, one after another, and Apache Kafka 4.4.0's answers.

`TOPIC` stands for the id of a topic with two partitions, `UNKNOWN` for an id without a topic. Recorded by
`record_state_requests`. Everything in a response counts, except the texts of errors.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, cast
from uuid import UUID

RECORDING = Path(__file__).parent / "vectors" / "state_requests.json"
TOPIC, UNKNOWN = "TOPIC", "UNKNOWN"
_UNKNOWN_ID = UUID(int=99)

Request = tuple[str, int, dict[str, Any]]
"""API, version and values."""


def _about(
    api: str, version: int, *partitions: dict[str, Any], topic: str = TOPIC, group: str = "g"
) -> Request:
    return api, version, {"group_id": group, "topics": [{"topic_id": topic, "partitions": list(partitions)}]}


def initialise(state_epoch: int, start_offset: int, partition: int = 0, topic: str = TOPIC) -> Request:
    asked = {"partition": partition, "state_epoch": state_epoch, "start_offset": start_offset}
    return _about("initialize_share_group_state", 0, asked, topic=topic)


def read(leader_epoch: int = 3, partition: int = 0, topic: str = TOPIC) -> Request:
    asked = {"partition": partition, "leader_epoch": leader_epoch}
    return _about("read_share_group_state", 0, asked, topic=topic)


def summary(version: int = 1, partition: int = 0, topic: str = TOPIC) -> Request:
    asked = {"partition": partition, "leader_epoch": -1}
    return _about("read_share_group_state_summary", version, asked, topic=topic)


def write(
    start_offset: int,
    *batches: tuple[int, int, int, int],
    count: int = 0,
    state_epoch: int = 5,
    leader_epoch: int = 3,
    partition: int = 0,
    topic: str = TOPIC,
    version: int = 1,
) -> Request:
    """Batches are first offset, last offset, state, count."""
    names = ("first_offset", "last_offset", "delivery_state", "delivery_count")
    asked = {
        "partition": partition,
        "state_epoch": state_epoch,
        "leader_epoch": leader_epoch,
        "start_offset": start_offset,
        "delivery_complete_count": count,
        "state_batches": [dict(zip(names, batch, strict=True)) for batch in batches],
    }
    return _about("write_share_group_state", version, asked, topic=topic)


def delete(partition: int = 0, topic: str = TOPIC) -> Request:
    return _about("delete_share_group_state", 0, {"partition": partition}, topic=topic)


def find(key: str, version: int = 6) -> Request:
    return "find_coordinator", version, {"key_type": 2, "coordinator_keys": [key]}


_APIS = (
    ("initialize_share_group_state", 0),
    ("read_share_group_state", 0),
    ("write_share_group_state", 1),
    ("delete_share_group_state", 0),
    ("read_share_group_state_summary", 1),
)

REQUESTS: list[Request] = [
    # Before the state is initialized.
    read(),
    read(-1),
    write(0, leader_epoch=-1),
    write(0, state_epoch=-1),
    initialise(-1, 0),
    write(0, (0, 4, 2, 1)),
    summary(),
    delete(),
    # Unknown topics and partitions.
    *[
        request
        for topic, partition in ((UNKNOWN, 0), (TOPIC, 2), (TOPIC, -1))
        for request in (
            initialise(5, 0, partition, topic),
            read(3, partition, topic),
            write(0, partition=partition, topic=topic),
            delete(partition, topic),
            summary(1, partition, topic),
        )
    ],
    # Epochs.
    initialise(5, -1),
    read(0),
    summary(),
    read(-1),
    read(3),
    summary(),
    read(3),
    read(2),
    write(0, leader_epoch=2),
    write(0, state_epoch=4),
    write(0, state_epoch=6, leader_epoch=4),
    initialise(4, 0),
    # Batches.
    write(0, (0, 4, 0, 1), (5, 9, 2, 1), count=5),
    read(),
    summary(),
    summary(version=0),
    write(0, (2, 6, 4, 1), (8, 12, 0, 2), count=5),
    read(),
    write(3, (3, 3, 2, 2), (3, 20, 0, 1), count=7),
    read(),
    summary(),
    write(-1, (4, 4, 2, 5), count=8),
    summary(),
    read(),
    write(5, (6, 6, 2, 6), version=0),
    summary(),
    write(6, leader_epoch=-1, count=1),
    write(6, state_epoch=-1, count=1),
    write(6, leader_epoch=-1, partition=-1),
    write(6, count=1),
    read(),
    summary(),
    # The start offset never goes back, nor does the count.
    write(3, (7, 7, 3, 7), count=9),
    read(),
    summary(),
    write(6, (8, 8, 4, 7), count=0),
    summary(),
    write(6, count=4),
    summary(),
    write(-1, (9, 9, 3, 7), count=7),
    read(),
    summary(),
    write(8, count=2),
    read(),
    summary(),
    # Initialized again.
    initialise(6, 10),
    read(),
    summary(),
    read(2),
    read(3),
    write(10, (10, 10, 2, 1), state_epoch=5, count=1),
    write(10, (10, 10, 2, 1), state_epoch=6, count=1),
    read(),
    initialise(-1, 0),
    summary(),
    # Another partition of the same topic, and both at once.
    summary(partition=1),
    initialise(1, 4, partition=1),
    _about(
        "read_share_group_state",
        0,
        {"partition": 0, "leader_epoch": 3},
        {"partition": 1, "leader_epoch": 3},
        {"partition": 2, "leader_epoch": 3},
    ),
    # Deleted.
    delete(),
    read(),
    summary(),
    delete(),
    initialise(0, 0),
    read(0),
    summary(),
    # Empty requests.
    *[(api, version, {"group_id": "", "topics": [{"topic_id": TOPIC}]}) for api, version in _APIS],
    *[(api, version, {"group_id": "g", "topics": []}) for api, version in _APIS],
    *[(api, version, {"group_id": "g", "topics": [{"topic_id": TOPIC}]}) for api, version in _APIS],
    # The coordinator.
    find("g:AAECAwQFBgcICQoLDA0ODw:0"),
    find("g:with:colons:AAECAwQFBgcICQoLDA0ODw:17"),
    find("g:AAECAwQFBgcICQoLDA0ODw:0", version=5),
    find("g"),
    find("g:0"),
    find(":AAECAwQFBgcICQoLDA0ODw:0"),
    find("g:AAECAwQFBgcICQoLDA0ODw:zero"),
    find("g:topic:0"),
]


def with_topic(values: Mapping[str, Any], topic_id: UUID) -> dict[str, Any]:
    """The values of a request with ids in place of their names."""
    ids = {TOPIC: topic_id, UNKNOWN: _UNKNOWN_ID}
    topics: list[dict[str, Any]] = values.get("topics", [])
    named = [{**topic, "topic_id": ids[topic["topic_id"]]} for topic in topics]
    return {**values, "topics": named} if topics else dict(values)


def plain(response: Any, topic_id: UUID) -> Any:
    """A response as JSON: names in place of ids, error codes as numbers, without texts and addresses."""
    if dataclasses.is_dataclass(response):
        return {
            field.name: plain(getattr(response, field.name), topic_id)
            for field in dataclasses.fields(response)
            if field.name not in ("error_message", "throttle_time", "node_id", "host", "port")
        }
    if isinstance(response, tuple):
        return [plain(item, topic_id) for item in cast("Sequence[Any]", response)]
    if isinstance(response, UUID):
        return {topic_id: TOPIC, _UNKNOWN_ID: UNKNOWN}[response]
    return response.value if isinstance(response, Enum) else response


def recorded() -> list[Any]:
    """Kafka's answers to each of `REQUESTS`."""
    answers: list[Any] = json.loads(RECORDING.read_text(encoding="utf-8"))
    return answers
