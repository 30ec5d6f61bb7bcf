"""The order in which members and topics go to the assignors: that of Kafka's hash maps, because an assignor's
result depends on it (KIP-848, KIP-932). Pure.
"""

from collections.abc import Collection

from barnabas.coordinator.assignor.java_hash_map import (
    default_capacity,
    string_hash,
    timeline_order,
    walk_order,
)


def in_map_order(names: Collection[str]) -> list[str]:
    """Names in the order of a Java hash map; two in one bucket are in the order of the names."""
    return walk_order(sorted(names), string_hash, default_capacity(len(names)))


def members_in_map_order(member_ids: Collection[str], updated_id: str) -> list[str]:
    """A group's members in the order in which Kafka's assignors get them; one of them may be new.

    Members with equal places are in the order of their ids, because the order of joining does not survive a
    restart.
    """
    known = timeline_order(sorted(member_ids))
    all_ids = known if updated_id in member_ids else [*known, updated_id]
    return walk_order(all_ids, string_hash, default_capacity(len(all_ids)))
