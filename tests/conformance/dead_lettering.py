"""Groups with dead letters, and the letters in their topic."""

from __future__ import annotations

from typing import Any, NamedTuple

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.record_batch import iterate_headers
from barnabas.protocol.records import Record, iterate_records
from tests.conformance.conftest import Stage
from tests.conformance.harness import Lab, settle
from tests.conformance.share_member import GROUP

LETTER_TOPIC = "dlq.group"
TOPIC_NAME = "errors.deadletterqueue.topic.name"
COPIES_RECORDS = "errors.deadletterqueue.copy.record.enable"
COPIES_HEADERS = "share.dead.letter.copy.headers.enable"
ON_FAILURE = "share.dead.letter.on.failure"
CREATES_TOPICS = "errors.deadletterqueue.auto.create.topics.enable"
ENABLE = "errors.deadletterqueue.group.enable"

REJECTED = "Offset rejected by client."
TOO_OFTEN = "Offset delivery count exceeded the threshold."
ARCHIVED = "Offset rejected by an administrator."
EXPIRED = "Offset expired before it was acknowledged."


class Letter(NamedTuple):
    """A dead letter: its place, the original record, and the reason."""

    partition: int
    topic: str
    source_partition: int
    offset: int
    group: str
    delivery_count: int
    message: str
    record: Record


async def use_dead_letters(lab: Lab, group_id: str = GROUP, **more: str) -> None:
    """The group writes dead letters; `__` in a setting's name stands for a dot."""
    await lab.set_group_configs(
        group_id,
        {TOPIC_NAME: LETTER_TOPIC, **{name.replace("__", "."): value for name, value in more.items()}},
    )


async def letters(lab: Lab, topic_name: str = LETTER_TOPIC) -> list[Letter]:
    """All dead letters in the topic, by partition and offset; none if there is no such topic."""
    await settle()
    topic = lab.broker.metadata.image.topics_by_name.get(topic_name)
    if topic is None:
        return []
    return [
        letter_of(index, record)
        for index in range(len(topic.partitions))
        for record in await records_of(lab, topic.topic_id, index)
    ]


async def records_of(lab: Lab, topic_id: Any, partition: int) -> list[Record]:
    """The records that a consumer of the partition gets."""
    asked = {"partition": partition, "fetch_offset": 0, "partition_max_bytes": 1 << 24}
    response = await lab.admin.ask(
        "fetch", max_wait=0, topics=[{"topic_id": topic_id, "partitions": [asked]}]
    )
    (answer,) = response.responses[0].partitions
    assert answer.error_code is ErrorCode.none, answer
    data = bytes(answer.records or b"")
    return [
        record
        for position, header in iterate_headers(data)
        if not header.is_control
        for record in iterate_records(data, position)
    ]


def letter_of(partition: int, record: Record) -> Letter:
    """The letter that a record of the topic is; the record must be one."""
    values = {name: (value or b"").decode() for name, value in record.headers[:6]}
    assert list(values) == [
        "__dlq.errors.topic",
        "__dlq.errors.partition",
        "__dlq.errors.offset",
        "__dlq.errors.group",
        "__dlq.errors.delivery.count",
        "__dlq.errors.message",
    ]
    topic, source_partition, offset, group, delivery_count, message = values.values()
    return Letter(
        partition, topic, int(source_partition), int(offset), group, int(delivery_count), message, record
    )


async def offsets_of_letters(lab: Lab) -> list[int]:
    """The original offsets of all letters, as they lie in the topic."""
    return [one.offset for one in await letters(lab)]


async def stage_with_letters(lab: Lab, make: Any, **more: str) -> Stage:
    stage: Stage = await make(lab)
    await use_dead_letters(lab, **more)
    return stage
