"""The assignors of consumer groups give the output of Kafka 4.3.1's, and have the properties of KIP-848.

The vectors are groups that change step by step; `vectors/ConsumerAssignorVectors.java` writes them.
"""

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from barnabas.coordinator.assignor.consumer_assignors import CONSUMER_ASSIGNORS
from barnabas.coordinator.assignor.exclusive import ExclusiveMember
from barnabas.coordinator.assignor.java_hash_map import default_capacity, string_hash, walk_order

VECTORS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "vectors" / "consumer_assignors.json").read_text()
)


def _members(vector: dict[str, Any], ids: list[UUID]) -> dict[str, ExclusiveMember]:
    return {
        member_id: ExclusiveMember(
            [ids[index] for index in subscribed],
            {ids[int(index)]: tuple(partitions) for index, partitions in previous.items()},
            instance_id,
        )
        for member_id, instance_id, subscribed, previous in vector["members"]
    }


@pytest.mark.parametrize("number", range(len(VECTORS)))
def test_every_vector_of_kafka_is_matched_exactly(number: int) -> None:
    vector = VECTORS[number]
    ids = [UUID(hex=topic) for topic in vector["topics"]]
    assign = CONSUMER_ASSIGNORS[vector["assignor"]]
    counts = dict(zip(ids, vector["counts"], strict=True))
    members = _members(vector, ids)
    assigned = assign(members, counts, vector["homogeneous"])
    assert [
        {str(ids.index(topic)): list(partitions) for topic, partitions in assigned.get(member_id, {}).items()}
        for member_id in members
    ] == vector["output"]


@pytest.mark.parametrize("number", range(0, len(VECTORS), 7))
def test_members_of_a_vector_stand_in_the_order_of_a_hash_map(number: int) -> None:
    member_ids = [member[0] for member in VECTORS[number]["members"]]
    assert walk_order(sorted(member_ids), string_hash, default_capacity(len(member_ids))) == member_ids
