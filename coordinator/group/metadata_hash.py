"""A hash over the topics that a group subscribes to: when it changes, the group's epoch grows.

Kafka hashes topic id, name and partitions with XXH3; Barnabas uses BLAKE2, which Python has. The hashes are
stored, and compared only with hashes of the same broker. If one of the two brokers reads the other's log, it
sees one change, at the group's first heartbeat.
"""

from collections.abc import Iterable
from hashlib import blake2b

from barnabas.coordinator.replay.interfaces import TopicCatalog


def metadata_hash(topic_names: Iterable[str], catalog: TopicCatalog) -> int:
    """A signed 64-bit hash of those topics that exist: id, name, partition count. 0 if none exists."""
    shapes = [shape for name in sorted(topic_names) if (shape := catalog.topic_by_name(name)) is not None]
    if not shapes:
        return 0
    hasher = blake2b(digest_size=8)
    for shape in shapes:
        # Fixed lengths around the name, and a name has no zero byte, so no two lists give the same bytes.
        hasher.update(shape.topic_id.bytes + shape.partition_count.to_bytes(4, "big"))
        hasher.update(shape.name.encode() + b"\0")
    return int.from_bytes(hasher.digest(), "big", signed=True)
