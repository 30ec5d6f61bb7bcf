"""`barnabas topics`: lists and describes topics, creates and deletes them, adds partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from barnabas.cli.printing import Printer, Row
from barnabas.cli.target import RefusedError, Target
from barnabas.client.admin.connection import AdminConnection
from barnabas.client.admin.group_positions import Bounds, fetch_bounds
from barnabas.client.admin.settings import Resource, ResourceType, Source, describe_settings
from barnabas.client.admin.topics import (
    BROKERS_DEFAULT,
    TopicDescription,
    add_partitions,
    create_topic,
    delete_topic,
    describe_topics,
)
from barnabas.client.errors import BrokerError, TopicGoneError, UnknownTopicError
from barnabas.client.topic_partition import TopicPartition
from barnabas.protocol.counted import counted
from barnabas.protocol.errors import ErrorCode

_LIST_COLUMNS: Final = {
    "topic": "TOPIC",
    "partition_count": "PARTITIONS",
    "replication_factor": "REPLICAS",
    "offset_count": "OFFSETS",
    "topic_id": "ID",
}
_PARTITION_COLUMNS: Final = {
    "partition": "PARTITION",
    "start_offset": "START",
    "end_offset": "END",
    "leader": "LEADER",
    "replicas": "REPLICAS",
    "in_sync_replicas": "IN SYNC",
}


async def list_topics(target: Target, printer: Printer, *, with_internal: bool) -> None:
    """Print all topics. Raises `ConsumerError`."""
    async with target.administer() as admin:
        found = await describe_topics(admin)
        topics = [topic for topic in found if with_internal or not topic.is_internal]
        rows = await _rows_of_existing(admin, topics)
        printer.table(rows, _LIST_COLUMNS)


async def _rows_of_existing(admin: AdminConnection, topics: Sequence[TopicDescription]) -> list[Row]:
    """The rows of the topics that still exist: some may have been deleted after they were listed."""
    left = list(topics)
    while True:
        try:
            bounds = await fetch_bounds(admin, [partition for topic in left for partition in _led(topic)])
        except UnknownTopicError as error:
            left = [topic for topic in left if topic.name not in error.names]
        except TopicGoneError as error:
            left = [topic for topic in left if topic.topic_id != error.topic_id]
        else:
            return [_topic_row(topic, bounds) for topic in left]


async def describe(target: Target, printer: Printer, names: Sequence[str]) -> None:
    """Print each topic with its partitions and its own settings. Raises `ConsumerError`."""
    async with target.administer() as admin:
        for number, topic in enumerate(await describe_topics(admin, names)):
            if number:
                printer.text()
            await _describe_one(admin, printer, topic)


async def create(
    target: Target,
    printer: Printer,
    name: str,
    *,
    partition_count: int,
    replication_factor: int,
    settings: Mapping[str, str],
    dry_run: bool,
    if_missing: bool,
) -> None:
    """Create the topic, or check that it could be created.

    Raises `ConsumerError`; `RefusedError` if the topic exists with another number of partitions.
    """
    done = "could be created" if dry_run else "created"
    async with target.administer() as admin:
        try:
            count = await create_topic(
                admin,
                name,
                partition_count=partition_count,
                replication_factor=replication_factor,
                settings=settings,
                validate_only=dry_run,
            )
        except BrokerError as error:
            if not if_missing or error.code is not ErrorCode.topic_already_exists:
                raise
            count, done = await _existing_count(admin, name, partition_count), "exists"
    is_created = done == "created"
    row = {
        "type": "topic",
        "topic": name,
        "partition_count": count,
        "dry_run": dry_run,
        "created": is_created,
    }
    printer.result(row, f"{name}: {done} with {counted(count, 'partition')}")


async def _existing_count(admin: AdminConnection, name: str, wanted_count: int) -> int:
    """The partitions of an existing topic. Raises `RefusedError` if another number is wanted."""
    (topic,) = await describe_topics(admin, [name])
    count = len(topic.partitions)
    if wanted_count not in (count, BROKERS_DEFAULT):
        raise RefusedError(
            f"The topic {name} has {counted(count, 'partition')} and not {wanted_count}: name that number, "
            "or delete the topic first"
        )
    return count


async def grow(target: Target, printer: Printer, name: str, partition_count: int) -> None:
    """Add partitions. Raises `ConsumerError`."""
    async with target.administer() as admin:
        await add_partitions(admin, name, partition_count)
    printer.result(
        {"type": "topic", "topic": name, "partition_count": partition_count},
        f"{name}: has {counted(partition_count, 'partition')} now; "
        "keys may go to other partitions than before",
    )


async def delete(target: Target, printer: Printer, names: Sequence[str]) -> None:
    """Delete the topics, one after the other. Raises `ConsumerError`; the topics before are deleted then."""
    async with target.administer() as admin:
        for name in names:
            await delete_topic(admin, name)
            printer.result({"type": "deleted", "topic": name}, f"{name}: deleted")


def _led(topic: TopicDescription) -> list[TopicPartition]:
    """The partitions that have a leader, which alone knows the bounds of their logs."""
    return [
        TopicPartition(topic.name, partition.partition)
        for partition in topic.partitions
        if partition.leader >= 0
    ]


def _topic_row(topic: TopicDescription, bounds: Mapping[TopicPartition, Bounds]) -> Row:
    own = [bounds[partition] for partition in _led(topic) if partition in bounds]
    return {
        "type": "topic",
        "topic": topic.name,
        "partition_count": len(topic.partitions),
        "replication_factor": max((len(partition.replicas) for partition in topic.partitions), default=0),
        "offset_count": sum(bound.end_offset - bound.start_offset for bound in own),
        "topic_id": str(topic.topic_id),
        "is_internal": topic.is_internal,
    }


async def _describe_one(admin: AdminConnection, printer: Printer, topic: TopicDescription) -> None:
    settings = await describe_settings(admin, Resource(ResourceType.TOPIC, topic.name))
    own = {setting.name: setting.value for setting in settings if setting.source is Source.TOPIC}
    bounds = await fetch_bounds(admin, _led(topic))
    if printer.as_json:
        printer.row({**_topic_row(topic, bounds), "settings": own})
    else:
        printer.text(f"{topic.name}  (id {topic.topic_id})")
        if own:
            printer.text(f"  settings: {', '.join(f'{name}={value}' for name, value in own.items())}")
    rows: list[Row] = []
    for partition in topic.partitions:
        bound = bounds.get(TopicPartition(topic.name, partition.partition))
        rows.append(
            {
                "type": "partition",
                "topic": topic.name,
                "partition": partition.partition,
                "start_offset": None if bound is None else bound.start_offset,
                "end_offset": None if bound is None else bound.end_offset,
                "leader": None if partition.leader < 0 else partition.leader,
                "leader_epoch": partition.leader_epoch,
                "replicas": list(partition.replicas),
                "in_sync_replicas": list(partition.in_sync_replicas),
            }
        )
    printer.table(rows, _PARTITION_COLUMNS)
