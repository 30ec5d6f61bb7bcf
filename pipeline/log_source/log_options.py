"""The options of `kafka-log`, parsed. Options of Spark's own Kafka connector keep their names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, cast

from barnabas.pipeline.errors import OptionError
from barnabas.pipeline.log_source.slice_reader import DAMAGE_COLUMN
from barnabas.pipeline.options import Options
from barnabas.pipeline.schema import RECORD_COLUMNS, pick_columns

LOG_COLUMNS: Final = {**RECORD_COLUMNS, DAMAGE_COLUMN: "string"}
"""The columns that the option `columns` can name; without the option there is no `damage`."""
SLICE_BYTES: Final = 128 * 1024 * 1024

EARLIEST: Final = -2
LATEST: Final = -1

Place = Literal["earliest", "latest"] | Mapping[tuple[str, int], int]
"""A beginning or end: an offset for each named partition, which may be `EARLIEST` or `LATEST`."""

_OFFSETS_EXAMPLE = '{"topic": {"0": 23, "1": -2}}'


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """The records to read. Times are in ms since 1970."""

    paths: tuple[str, ...]
    topics: tuple[str, ...] | None
    columns: tuple[str, ...]
    starting_offsets: Place
    ending_offsets: Place
    starting_time_ms: int | None
    ending_time_ms: int | None
    is_committed: bool
    slice_bytes: int
    skips_damage: bool
    has_pushdown: bool


def parse_log_options(given: Mapping[str, str]) -> LogOptions:
    """Raises `OptionError` for missing, unknown, malformed or conflicting options."""
    options = Options(given)
    names = options.names("topics")
    columns = options.names("columns")
    parsed = LogOptions(
        paths=_take_paths(options),
        topics=None if names is None else tuple(names),
        columns=tuple(pick_columns(LOG_COLUMNS, columns) if columns else RECORD_COLUMNS),
        starting_offsets=_take_place(options, "startingOffsets", "earliest"),
        ending_offsets=_take_place(options, "endingOffsets", "latest"),
        starting_time_ms=options.optional_integer("startingTimestamp"),
        ending_time_ms=options.optional_integer("endingTimestamp"),
        is_committed=_take_isolation(options),
        slice_bytes=options.integer("sliceBytes", SLICE_BYTES, least=1),
        skips_damage=options.choice("onCorrupt", ("fail", "skip"), "fail") == "skip",
        has_pushdown=options.flag("pushdown", default=True),
    )
    options.finish()
    options.exclude("startingOffsets", "startingTimestamp")
    options.exclude("endingOffsets", "endingTimestamp")
    return parsed


def _take_isolation(options: Options) -> bool:
    levels = ("read_uncommitted", "read_committed")
    return options.choice("isolation", levels, levels[0]) == levels[1]


def _take_paths(options: Options) -> tuple[str, ...]:
    """Spark passes one argument of load as `path`, and several as `paths`, a JSON list."""
    several = options.text("paths")
    paths = _parse_paths(several) if several else [options.required("path", "/var/lib/barnabas/data")]
    return tuple(dict.fromkeys(str(Path(path).absolute()) for path in paths))


def _parse_paths(text: str) -> list[str]:
    try:
        paths = json.loads(text)
    except ValueError:
        paths = None
    if not isinstance(paths, list) or not paths:
        raise OptionError("paths", f"{text!r} is not a JSON list of directories")
    return [str(path) for path in cast("list[object]", paths)]


def _take_place(options: Options, name: str, default: Literal["earliest", "latest"]) -> Place:
    text = (options.text(name) or default).strip()
    if text.casefold() == "earliest":
        return "earliest"
    if text.casefold() == "latest":
        return "latest"
    try:
        return {
            (topic, int(partition)): _offset(offset)
            for topic, offsets in json.loads(text).items()
            for partition, offset in offsets.items()
        }
    except (AttributeError, TypeError, ValueError) as error:
        raise OptionError(name, f"{text!r} is not earliest, latest or such as {_OFFSETS_EXAMPLE}") from error


def _offset(value: object) -> int:
    if type(value) is not int or value < EARLIEST:
        raise ValueError(value)
    return value
