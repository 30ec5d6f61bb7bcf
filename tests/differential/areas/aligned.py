"""Ids that two brokers generate, chosen so that both process them in one order.

Kafka breaks ties between topics and between members by the order of its hash maps, and by the ids themselves.
A broker generates ids until one has the right place; these answers are not compared.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from functools import partial
from typing import Any
from uuid import UUID

from barnabas.coordinator.assignor.java_hash_map import bucket_of, string_hash, uuid_hash
from barnabas.protocol.errors import ErrorCode
from tests.differential.stage import Stage

_BUCKET_COUNT = 16
_TRIES_MAX = 2_000
_MIDDLE, _END = "client-8", "m"
"""Ids begin with the client's id, or they are a UUID in base 64."""
_ENCODED_LENGTH = 22


def _slice_of(number: int, end: int, slice_count: int) -> int:
    return number * slice_count // end


def _is_at(topic_id: UUID, place: int, place_count: int) -> bool:
    """Whether it has this place among that number of places, both by its hash and in the order of the ids."""
    bucket = bucket_of(uuid_hash(topic_id), _BUCKET_COUNT)
    # Java compares ids by their halves, which are signed.
    by_itself = (topic_id.int >> 64) + (1 << 63) & (1 << 64) - 1
    return (
        _slice_of(bucket, _BUCKET_COUNT, place_count) == place
        and _slice_of(by_itself, 1 << 64, place_count) == place
    )


async def create_topic_at(
    stage: Stage, name: str, partition_count: int, *, place: int, place_count: int
) -> UUID:
    """A topic whose id has this place among the ids of that number of topics."""
    topic = {"name": stage.name(name), "num_partitions": partition_count, "replication_factor": 1}
    for _ in range(_TRIES_MAX):
        response = await stage.quietly(0, "create_topics", topics=[{**topic, "configs": []}], timeout=10_000)
        topic_id: UUID = response.topics[0].topic_id
        if _is_at(topic_id, place, place_count):
            stage.know(topic_id)
            await stage.until(partial(_is_known, stage, name, topic_id, partition_count))
            return topic_id
        await stage.quietly(0, "delete_topics", topics=[{"name": None, "topic_id": topic_id}], timeout=10_000)
    raise TimeoutError("no topic's id got the right place")


async def create_topics(stage: Stage, partition_counts: Mapping[str, int], place_count: int) -> list[UUID]:
    """The first of `place_count` topics, in this order."""
    return [
        await create_topic_at(stage, name, partition_count, place=place, place_count=place_count)
        for place, (name, partition_count) in enumerate(partition_counts.items())
    ]


async def _is_known(stage: Stage, name: str, topic_id: UUID, partition_count: int) -> bool:
    return await stage.topic_id(name) == topic_id and await stage.is_led(name, partition_count)


async def member_id_at(stage: Stage, connection: int, join: Mapping[str, Any], *, place: int) -> str:
    """An id for a member that is about to join with this request: in this bucket, and in the upper half if
    the bucket is odd. It sorts before the names that histories give to members.
    """
    request: dict[str, Any] = {**join, "member_id": ""}
    unused: list[str] = []
    member_id = ""
    for _ in range(_TRIES_MAX):
        response = await stage.quietly(connection, "join_group", **request)
        if response.error_code is not ErrorCode.member_id_required:
            raise TimeoutError(f"no member id was given: {response.error_code}")
        member_id = response.member_id
        is_upper = member_id > _MIDDLE
        bucket = bucket_of(string_hash(member_id), _BUCKET_COUNT)
        if member_id < _END and (bucket, is_upper) == (place, bool(place % 2)):
            break
        unused.append(member_id)
    know_member(stage, member_id)
    members = [{"member_id": one, "group_instance_id": None, "reason": None} for one in unused]
    if members:
        await stage.quietly(connection, "leave_group", group_id=join["group_id"], members=members)
    return member_id


def know_member(stage: Stage, member_id: str) -> None:
    """Gives a name to an id, unless it is a text that contains a UUID."""
    if len(member_id) == _ENCODED_LENGTH:
        stage.know(UUID(bytes=base64.urlsafe_b64decode(f"{member_id}==")))
