"""The options of `kafka-topic` for reading, parsed. Options of Spark's own connector keep their names."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from barnabas.client.cluster.topics import EARLIEST, LATEST, Isolation
from barnabas.pipeline.errors import OptionError
from barnabas.pipeline.options import Options
from barnabas.pipeline.schema import RECORD_COLUMNS, pick_columns
from barnabas.pipeline.servers import Servers, take_servers

Offsets = Mapping[str, Mapping[int, int]]
"""By topic and partition an offset, or `EARLIEST` or `LATEST`."""
Place = Literal["earliest", "latest"] | Offsets

PARTITIONS_MAX: Final = 100_000
"""The most tasks that a read can be split into by `minPartitions`."""

_ISOLATION: Final = {
    "read_uncommitted": Isolation.READ_UNCOMMITTED,
    "read_committed": Isolation.READ_COMMITTED,
}
_EXAMPLE: Final = '{"topic": {"0": 23, "1": -2}}'
_BATCH_ONLY: Final = ("endingOffsets", "endingTimestamp")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicOptions:
    """The records to read. Times are in ms since 1970; None for the default of the kind of read."""

    servers: Servers
    topics: tuple[str, ...] | None
    pattern: str | None
    """A regular expression for the whole name of a topic; either this or `topics` is given."""
    columns: tuple[str, ...]
    starting_offsets: Place | None
    ending_offsets: Place | None
    starting_time_ms: int | None
    ending_time_ms: int | None
    isolation: Isolation
    offsets_per_trigger_max: int | None
    partitions_min: int
    fails_on_data_loss: bool
    has_pushdown: bool

    def refuse_batch_only(self) -> None:
        """Raises `OptionError` for options that a stream can't have, because it has no end."""
        for name, value in zip(_BATCH_ONLY, (self.ending_offsets, self.ending_time_ms), strict=True):
            if value is not None:
                raise OptionError(name, "is for batch reads; a stream has no end")

    def refuse_stream_only(self) -> None:
        """Raises `OptionError` for options of streams, or a batch read that would begin at its end."""
        if self.starting_offsets == "latest":
            raise OptionError("startingOffsets", "latest is for streams; there would be nothing to read")
        if self.offsets_per_trigger_max is not None:
            raise OptionError("maxOffsetsPerTrigger", "is for streams; a batch read has no trigger")


def parse_topic_options(given: Mapping[str, str]) -> TopicOptions:
    """Raises `OptionError` for missing, unknown, malformed or conflicting options."""

    options = Options(given)
    topics, pattern = _take_topics(options)
    parsed = TopicOptions(
        servers=take_servers(options),
        topics=topics,
        pattern=pattern,
        columns=tuple(pick_columns(RECORD_COLUMNS, options.names("columns"))),
        starting_offsets=_take_place(options, "startingOffsets"),
        ending_offsets=_take_place(options, "endingOffsets"),
        starting_time_ms=options.optional_integer("startingTimestamp"),
        ending_time_ms=options.optional_integer("endingTimestamp"),
        isolation=_ISOLATION[options.choice("isolation", tuple(_ISOLATION), "read_uncommitted")],
        offsets_per_trigger_max=options.optional_integer("maxOffsetsPerTrigger", least=1),
        partitions_min=options.integer("minPartitions", 1, least=1, most=PARTITIONS_MAX),
        fails_on_data_loss=options.flag("failOnDataLoss", default=True),
        has_pushdown=options.flag("pushdown", default=True),
    )
    options.finish()
    options.exclude("startingOffsets", "startingTimestamp")
    options.exclude("endingOffsets", "endingTimestamp")
    return parsed


def _take_topics(options: Options) -> tuple[tuple[str, ...] | None, str | None]:
    names, pattern = options.names("topics"), options.text("topicsPattern")
    if (names is None) == (pattern is None):
        raise OptionError("topics", "give either topics, such as 'orders,returns', or topicsPattern")
    if pattern is not None:
        try:
            re.compile(pattern)
        except re.error as error:
            raise OptionError("topicsPattern", f"{pattern!r} is no regular expression: {error}") from error
    return None if names is None else tuple(names), pattern


def _take_place(options: Options, name: str) -> Place | None:
    text = options.text(name)
    if text is None:
        return None
    text = text.strip()
    if text.casefold() == "earliest":
        return "earliest"
    if text.casefold() == "latest":
        return "latest"
    try:
        return _offsets(json.loads(text))
    except (AttributeError, TypeError, ValueError) as error:
        raise OptionError(name, f"{text!r} is not earliest, latest or such as {_EXAMPLE}") from error


def _offsets(given: Any) -> Offsets:
    return {
        topic: {int(partition): _offset(offset) for partition, offset in offsets.items()}
        for topic, offsets in given.items()
    }


def _offset(value: Any) -> int:
    if type(value) is not int or value < min(EARLIEST, LATEST):
        raise ValueError(value)
    return value
