"""The options of `kafka-share`, read once on the driver: their meanings, defaults and limits."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, cast

from barnabas.pipeline.errors import OptionError
from barnabas.pipeline.options import Options
from barnabas.pipeline.schema import SHARE_COLUMNS, pick_columns
from barnabas.pipeline.servers import REQUEST_TIMEOUT_MS, Servers, take_servers

Isolation = Literal["read_uncommitted", "read_committed"]
OnCorrupt = Literal["fail", "sideTable"]

RECORDS_PER_BATCH_MAX: Final = 10_000_000
"""The limit of `maxRecordsPerBatch`, and of a batch without that option."""
CORES_MAX: Final = 10_000
WAIT_MS_MAX: Final = 60_000
CLIENT_ID: Final = "barnabas-spark"

_DURATION: Final = re.compile(r"P(?=.)(\d+D)?(T(?=.)(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?", re.IGNORECASE)
"""The ISO 8601 durations that Kafka accepts."""


@dataclass(frozen=True, kw_only=True)
class ShareSettings:
    """The settings of a query. Picklable; durations are in milliseconds."""

    servers: Servers
    group: str
    topics: tuple[str, ...]
    columns: tuple[str, ...] = tuple(SHARE_COLUMNS)
    max_records_per_batch: int | None = None
    """Offsets in a batch; None for all that can be acquired, at most `RECORDS_PER_BATCH_MAX`."""
    max_wait_ms: int = 200
    """How long one call for a batch waits for records if there are none."""
    available_now_wait_ms: int = 2_000
    """With Trigger.AvailableNow, how long to wait for records that other members hold."""
    max_records_per_partition: int = 100_000
    """Offsets that one task reads at most."""
    cores: int = 1
    """Tasks that Spark runs at the same time."""
    record_locks: int | None = None
    """`share.partition.max.record.locks` of the group, set before the query joins; None doesn't change it."""
    min_partitions: int = 1
    """The least number of tasks of a batch, if it has enough offsets."""
    renew_locks: bool = True
    starting_offsets: str | None = None
    """`share.auto.offset.reset` of the group, set before the query joins; None doesn't change it."""
    isolation: Isolation | None = None
    """`share.isolation.level` of the group, likewise."""
    ack_dir: str | None = None
    """The directory of decisions about single records; None accepts all records of a batch."""
    state_dir: str | None = None
    """The directory of notes that must survive a crash (`state_files`). With None, a repeated batch has all
    its records."""
    side_table: str | None = None
    """The directory for the coordinates of unreadable records."""
    fail_on_data_loss: bool = True
    on_corrupt: OnCorrupt = "fail"


def parse_settings(given: Mapping[str, str]) -> ShareSettings:
    """Raises `OptionError` for missing, malformed, contradictory or unknown options."""
    options = Options(given)
    settings = ShareSettings(
        servers=_servers(options),
        group=options.required("group", "orders-to-lake"),
        topics=_topics(options),
        columns=tuple(pick_columns(SHARE_COLUMNS, options.names("columns"))),
        max_records_per_batch=options.optional_integer(
            "maxRecordsPerBatch", least=1, most=RECORDS_PER_BATCH_MAX
        ),
        max_wait_ms=options.integer("maxWaitMs", ShareSettings.max_wait_ms, most=WAIT_MS_MAX),
        available_now_wait_ms=options.integer("availableNowWaitMs", ShareSettings.available_now_wait_ms),
        max_records_per_partition=options.integer(
            "maxRecordsPerPartition", ShareSettings.max_records_per_partition, least=1
        ),
        cores=options.integer("cores", len(os.sched_getaffinity(0)), least=1, most=CORES_MAX),
        record_locks=options.optional_integer("recordLocks", least=1, most=RECORDS_PER_BATCH_MAX),
        min_partitions=options.integer("minPartitions", ShareSettings.min_partitions, least=1, most=10_000),
        renew_locks=options.flag("renewLocks", default=True),
        starting_offsets=_starting_offsets(options),
        isolation=_isolation(options),
        ack_dir=_directory(options, "ackDir"),
        state_dir=_directory(options, "stateDir"),
        side_table=_directory(options, "sideTable"),
        fail_on_data_loss=options.flag("failOnDataLoss", default=True),
        on_corrupt=cast("OnCorrupt", options.choice("onCorrupt", ("fail", "sideTable"), "fail")),
    )
    options.finish()
    _check_side_table(settings)
    return settings


def _servers(options: Options) -> Servers:
    return replace(
        take_servers(options),
        client_id=options.text("clientId", CLIENT_ID) or CLIENT_ID,
        request_timeout_ms=options.integer("requestTimeoutMs", REQUEST_TIMEOUT_MS, least=100),
    )


def _topics(options: Options) -> tuple[str, ...]:
    options.required("topics", "orders,payments")
    return tuple(options.names("topics") or ())


def _starting_offsets(options: Options) -> str | None:
    """The value of Kafka's group setting: earliest, latest, by_duration:PT1H."""
    text = options.text("startingOffsets")
    if text is None:
        return None
    word = text.strip()
    if word.casefold() in {"earliest", "latest"}:
        return word.casefold()
    kind, colon, duration = word.partition(":")
    if kind.casefold() == "by_duration" and colon and _DURATION.fullmatch(duration):
        return f"by_duration:{duration.upper()}"
    raise OptionError("startingOffsets", f"{text!r} is not earliest, latest, or such as by_duration:PT1H")


def _isolation(options: Options) -> Isolation | None:
    if options.text("isolation") is None:
        return None
    levels = ("read_uncommitted", "read_committed")
    return cast("Isolation", options.choice("isolation", levels, levels[0]))


def _directory(options: Options, name: str) -> str | None:
    text = options.text(name)
    if text is not None and not text.strip():
        raise OptionError(name, "is empty; it has to be a directory or the URI of one")
    return None if text is None else text.strip()


def _check_side_table(settings: ShareSettings) -> None:
    """Checks that there is a side table if records may be left out."""
    if settings.side_table is not None:
        return
    if not settings.fail_on_data_loss:
        raise OptionError("sideTable", "is needed with failOnDataLoss=false, to note the lost records")
    if settings.on_corrupt == "sideTable":
        raise OptionError("sideTable", "is needed with onCorrupt=sideTable, to note the corrupt records")
