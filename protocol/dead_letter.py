"""One dead letter: the record that is written, and the original record that it speaks of (KIP-1191). Pure.

Six headers name the original record and the reason, as text, in the order of Apache Kafka. Key and value are
null, unless the group has its records copied.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from barnabas.protocol.delivery_state import Cause
from barnabas.protocol.records import Header, Record

HEADER_PREFIX: Final = "__dlq.errors."
TOPIC: Final = HEADER_PREFIX + "topic"
PARTITION: Final = HEADER_PREFIX + "partition"
OFFSET: Final = HEADER_PREFIX + "offset"
GROUP: Final = HEADER_PREFIX + "group"
DELIVERY_COUNT: Final = HEADER_PREFIX + "delivery.count"
MESSAGE: Final = HEADER_PREFIX + "message"

MESSAGES: Final[Mapping[Cause, str]] = {
    Cause.REJECT: "Offset rejected by client.",
    Cause.DELIVERY_LIMIT: "Offset delivery count exceeded the threshold.",
    Cause.ADMIN: "Offset rejected by an administrator.",
    Cause.EXPIRED: "Offset expired before it was acknowledged.",
}
"""The texts by the reason; the first two are those of Apache Kafka."""


class Original(NamedTuple):
    """The record that a letter speaks of, and the group that gave it up."""

    group_id: str
    topic: str
    partition: int
    offset: int


def letter_record(
    original: Original,
    delivery_count: int,
    reason: Cause,
    timestamp_ms: int,
    copy: Record | None,
    *,
    with_headers: bool,
) -> Record:
    """The letter, at offset 0. `copy` is the original record if it is copied; its headers come behind the
    letter's own, if they are wanted.
    """
    headers: list[Header] = [
        (TOPIC, original.topic.encode()),
        (PARTITION, b"%d" % original.partition),
        (OFFSET, b"%d" % original.offset),
        (GROUP, original.group_id.encode()),
        (DELIVERY_COUNT, b"%d" % delivery_count),
        (MESSAGE, MESSAGES[reason].encode()),
    ]
    if copy is None:
        return Record(0, timestamp_ms, None, None, tuple(headers))
    if with_headers:
        headers += ((name, value) for name, value in copy.headers if not name.startswith(HEADER_PREFIX))
    return Record(0, timestamp_ms, copy.key, copy.value, tuple(headers))


def original_of(letter: Record) -> Original | None:
    """The record that a letter speaks of; None if the record is no letter."""
    found = dict(reversed(letter.headers))
    values = [found.get(name) for name in (GROUP, TOPIC, PARTITION, OFFSET)]
    group_id, topic, partition, offset = (
        None if value is None else value.decode(errors="replace") for value in values
    )
    if group_id is None or topic is None or partition is None or offset is None:
        return None
    if not (partition.isdecimal() and offset.isdecimal()):
        return None
    return Original(group_id, topic, int(partition), int(offset))
