"""The beginning and end of a read: the user's options as an offset for each partition.

A time stands for the first record that is not older, or the end of the partition if there is none. A
partition ends at the high watermark, or for committed reads at the first open transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from barnabas.client.cluster.topics import EARLIEST, LATEST, Isolation, Topic
from barnabas.pipeline.errors import OptionError
from barnabas.pipeline.topic_source.catalog import Catalog
from barnabas.pipeline.topic_source.topic_options import Offsets, Place, TopicOptions
from barnabas.protocol.identity import TopicIdPartition

Positions = Mapping[TopicIdPartition, int]

_WORDS: Final = {"earliest": EARLIEST, "latest": LATEST}


def find_topics(catalog: Catalog, options: TopicOptions) -> list[Topic]:
    """The topics that the options name or describe; a pattern may match none.

    Raises `UnknownTopicError`, and `OptionError` if offsets are given for partitions that don't exist.
    """
    if options.pattern is not None:
        topics = catalog.match(options.pattern)
    else:
        topics = catalog.find(options.topics or ())
    _check_named(topics, options.starting_offsets, "startingOffsets")
    _check_named(topics, options.ending_offsets, "endingOffsets")
    return topics


def starts(catalog: Catalog, topics: Sequence[Topic], options: TopicOptions, default: str) -> Positions:
    """The first offset to read of each partition; `default` is `earliest` or `latest`."""
    if options.starting_time_ms is not None:
        return _at_time(catalog, topics, options.starting_time_ms, options.isolation)
    return _at_place(catalog, topics, options.starting_offsets or default, options.isolation)


def ends(catalog: Catalog, topics: Sequence[Topic], options: TopicOptions) -> Positions:
    """The offset behind the last one to read of each partition.

    Raises `OptionError` for a given offset that the partition has not reached: the read would wait for it.
    """
    if options.ending_time_ms is not None:
        return _at_time(catalog, topics, options.ending_time_ms, options.isolation)
    found = _at_place(catalog, topics, options.ending_offsets or "latest", options.isolation)
    if not isinstance(options.ending_offsets, str | None):
        _check_there(topics, found, latest(catalog, topics, options.isolation))
    return found


def latest(catalog: Catalog, topics: Sequence[Topic], isolation: Isolation) -> Positions:
    """The present end of each partition."""
    return _ask(catalog, {partition: LATEST for topic in topics for partition in topic.partitions}, isolation)


def _at_time(catalog: Catalog, topics: Sequence[Topic], time_ms: int, isolation: Isolation) -> Positions:
    partitions = [partition for topic in topics for partition in topic.partitions]
    found = catalog.offsets(partitions, time_ms, isolation)
    behind = _ask(
        catalog, {partition: LATEST for partition, offset in found.items() if offset is None}, isolation
    )
    return {partition: behind[partition] if offset is None else offset for partition, offset in found.items()}


def _at_place(
    catalog: Catalog, topics: Sequence[Topic], place: str | Offsets, isolation: Isolation
) -> Positions:
    at: Positions = {
        partition: _WORDS[place] if isinstance(place, str) else place[topic.name][partition.partition]
        for topic in topics
        for partition in topic.partitions
    }
    found = _ask(catalog, {partition: offset for partition, offset in at.items() if offset < 0}, isolation)
    return {partition: found.get(partition, offset) for partition, offset in at.items()}


def _check_named(topics: Sequence[Topic], place: Place | None, option: str) -> None:
    """Checks that the option gives an offset for each partition of the topics, and for no other."""
    if place is None or isinstance(place, str):
        return
    wanted = {(topic.name, partition.partition) for topic in topics for partition in topic.partitions}
    named = {(topic, index) for topic, given in place.items() for index in given}
    for topic, index in sorted(wanted - named):
        raise OptionError(option, f"names no offset for {topic}-{index}")
    for topic, index in sorted(named - wanted):
        raise OptionError(option, f"names {topic}-{index}, which is not read")


def _check_there(topics: Sequence[Topic], given: Positions, ends: Positions) -> None:
    for topic in topics:
        for partition in topic.partitions:
            if given[partition] > ends[partition]:
                where = f"{topic.name}-{partition.partition}"
                raise OptionError(
                    "endingOffsets", f"names {given[partition]} for {where}, which ends at {ends[partition]}"
                )


def _ask(catalog: Catalog, at: Positions, isolation: Isolation) -> Positions:
    found = catalog.offsets(list(at), at, isolation) if at else {}
    return {partition: offset or 0 for partition, offset in found.items()}
