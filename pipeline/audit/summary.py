"""The contents of a report, collected from an audit's tables: numbers and the first rows of long tables.

Spark sums up everything; the driver gets at most `ROWS_MAX` rows of a table and `BUCKETS_MAX` points of time.
docs/audit.md defines the rates and losses.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F  # noqa: N812  as all of Spark's users write it

from barnabas.pipeline.audit.due_letters import DUE, FAILED, UNKNOWN_LETTER, WRITTEN
from barnabas.pipeline.audit.tables import CAUSES, OPEN_OUTCOMES, OUTCOMES, UNKNOWN_OUTCOME
from barnabas.protocol.delivery_state import Cause, RecordState

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from barnabas.pipeline.audit.auditing import Audit

ROWS_MAX: Final = 100
BUCKETS_MAX: Final = 60
_MINUTE_SECONDS: Final = 60
_DAY_MINUTES: Final = 24 * 60
_BUCKET_MINUTES: Final = (1, 2, 5, 10, 15, 30, 60, 120, 180, 240, 360, 720, _DAY_MINUTES)
"""Usual steps of time; longer ones are whole days."""

Row = dict[str, Any]

ACKNOWLEDGED: Final = OUTCOMES[RecordState.ACKNOWLEDGED]
ARCHIVED: Final = OUTCOMES[RecordState.ARCHIVED]
AVAILABLE: Final = OUTCOMES[RecordState.AVAILABLE]
ARCHIVING: Final = OUTCOMES[RecordState.ARCHIVING]
OUTCOME_ORDER: Final = (ACKNOWLEDGED, AVAILABLE, ARCHIVING, ARCHIVED, UNKNOWN_OUTCOME)


@dataclass(frozen=True, slots=True)
class Summary:
    """The report's tables, as rows by column name. Counts are of records unless their name says otherwise."""

    groups: list[Row]
    group_sums: Row
    """Over all groups, also those beyond the rows of `groups`."""
    causes: list[Row]
    delivery_counts: list[Row]
    times: list[Row]
    """By the start of a bucket of `bucket_seconds`, and outcome."""
    bucket_seconds: int
    members: list[Row]
    poison: list[Row]
    checks: list[Row]
    violations: list[Row]
    share_partitions: list[Row]
    share_partition_count: int
    latencies: list[Row] | None
    """None without `with_latencies`."""

    def totals(self) -> Row:
        """The sums over all groups, as `--json` prints them."""
        return {
            **self.group_sums,
            "sharePartitionCount": self.share_partition_count,
            "violationCount": sum(check["violationCount"] for check in self.checks),
        }

    @property
    def is_done(self) -> bool:
        """Whether it is known that each record of the groups, and each before their start, has an outcome."""
        return self.share_partition_count > 0 and all(
            self.group_sums[name] == 0 for name in ("openCount", "unknownCount", "skippedCount")
        )


def summarise(audited: Audit, *, with_latencies: bool = False) -> Summary:
    """Collects a report's contents. `with_latencies` also reads the records, which takes longest."""
    times, bucket_seconds = _times(audited.outcomes)
    groups = _groups(audited)
    return Summary(
        groups=_rows(groups),
        group_sums=_group_sums(groups),
        causes=_causes(audited.outcomes),
        delivery_counts=_delivery_counts(audited.outcomes),
        times=times,
        bucket_seconds=bucket_seconds,
        members=_members(audited.outcomes),
        poison=_rows(audited.poison.orderBy(_weight(), F.desc("deliveryCount"), F.desc("recordCount"))),
        checks=_rows(audited.violations.groupBy("check").agg(F.count("*").alias("violationCount"))),
        violations=_rows(audited.violations.orderBy("topic", "partition", "group", "controlOffset")),
        share_partitions=_rows(audited.share_partitions.orderBy("topic", "partition", "group")),
        share_partition_count=audited.share_partitions.count(),
        latencies=_rows(audited.latencies.orderBy(F.desc("medianMs"))) if with_latencies else None,
    )


def _groups(audited: Audit) -> DataFrame:
    """By topic and group, the outcomes of its records."""
    is_done = _is_done()
    attempts = audited.outcomes.groupBy("topic", "group").agg(
        _records(F.col("outcome") == ACKNOWLEDGED).alias("acknowledgedCount"),
        *[_records(_archived_by(cause)).alias(f"{name}Count") for name, cause in _ARCHIVED_BY.items()],
        _records((F.col("outcome") == ARCHIVED) & ~_is_archived_by_any_cause()).alias(UNTOLD_ARCHIVED),
        *[_records(F.col("letter") == letter).alias(name) for name, letter in LETTER_COUNTS.items()],
        _records(F.col("outcome") == UNKNOWN_OUTCOME).alias("unknownCount"),
        _records(F.col("outcome") == AVAILABLE).alias("failedDeliveryCount"),
        _records(_is_cause(Cause.LOCK_EXPIRED)).alias("lockExpiredCount"),
        _records(is_done & (F.col("deliveryCount") > 1)).alias("redeliveredCount"),
        _records(is_done & F.col("deliveryCount").isNotNull()).alias("countedCount"),
    )
    ends = audited.share_partitions.groupBy("topic", "group").agg(
        _sum_if_known("openRecordCount").alias("openCount"),
        _sum_if_known("skippedRecordCount").alias("skippedCount"),
        F.min("beganAt").alias("beganAt"),
        F.max("lastDecidedAt").alias("lastDecidedAt"),
        F.min((F.col("begins") == "whole").cast("int")).cast("boolean").alias("isWhole"),
    )
    summed = ends.join(attempts, ["topic", "group"], "left").orderBy("topic", "group")
    return summed.na.fill(0, [name for name in attempts.columns if name.endswith("Count")])


def _group_sums(groups: DataFrame) -> Row:
    counts = [_sum_if_known(name).alias(name) for name in groups.columns if name.endswith("Count")]
    sums: Row = groups.agg(*counts, F.count_distinct("group").alias("groupCount")).collect()[0].asDict()
    return sums


def _sum_if_known(name: str) -> Column:
    """The sum of a column, 0 without rows; null if a value is not known."""
    return F.when(F.count(name) == F.count(F.lit(1)), F.coalesce(F.sum(name), F.lit(0)))


_ARCHIVED_BY: Final = {
    "rejected": Cause.REJECT,
    "deliveryLimit": Cause.DELIVERY_LIMIT,
    "gap": Cause.GAP,
    "logStart": Cause.LOG_START,
    "transactionAborted": Cause.TRANSACTION_ABORTED,
    "expired": Cause.EXPIRED,
    "admin": Cause.ADMIN,
}
"""Each archived record counts under its cause, or without one: the counts add up to all archived records."""


UNTOLD_ARCHIVED: Final = "archivedWithoutCauseCount"
ARCHIVED_COUNTS: Final = (*(f"{name}Count" for name in _ARCHIVED_BY), UNTOLD_ARCHIVED)
"""The columns that count records done without being accepted, by cause."""
LETTER_COUNTS: Final = {
    "dueLetterCount": DUE,
    "writtenLetterCount": WRITTEN,
    "lostLetterCount": FAILED,
    "unknownLetterCount": UNKNOWN_LETTER,
}
"""The columns that count records with dead letters, by the state of the letter."""
LETTER_NAMES: Final = {
    "dueLetterCount": "dead letters due",
    "writtenLetterCount": "dead letters written",
    "lostLetterCount": "dead letters lost",
    "unknownLetterCount": "dead letters unknown",
}


def _causes(outcomes: DataFrame) -> list[Row]:
    summed = outcomes.groupBy("outcome", "cause", "letter").agg(*_sums())
    return _rows(summed.orderBy(F.desc("recordCount")))


def _delivery_counts(outcomes: DataFrame) -> list[Row]:
    done = outcomes.where(_is_done() & F.col("deliveryCount").isNotNull())
    return _rows(done.groupBy("deliveryCount", "outcome").agg(*_sums()).orderBy("deliveryCount", "outcome"))


def _times(outcomes: DataFrame) -> tuple[list[Row], int]:
    """By bucket and outcome; at most `BUCKETS_MAX` buckets, and one more if they begin before the first."""
    ends = outcomes.agg(F.min("minute").alias("first"), F.max("minute").alias("last")).collect()[0]
    first: datetime | None = ends["first"]
    last: datetime | None = ends["last"]
    if first is None or last is None:
        return [], _MINUTE_SECONDS
    bucket_seconds = _MINUTE_SECONDS * bucket_minutes(_minutes_between(first, last))
    seconds = F.col("minute").cast("long")
    bucket = F.timestamp_seconds(F.floor(seconds / bucket_seconds) * bucket_seconds)
    by_time = outcomes.groupBy(bucket.alias("from"), "outcome").agg(*_sums()).orderBy("from", "outcome")
    return _rows(by_time, len(OUTCOME_ORDER) * (BUCKETS_MAX + 1)), bucket_seconds


def bucket_minutes(minutes: int) -> int:
    """The shortest step that takes at most `BUCKETS_MAX` of them."""
    for step in _BUCKET_MINUTES:
        if step * BUCKETS_MAX >= minutes:
            return step
    return _DAY_MINUTES * -(-minutes // (BUCKETS_MAX * _DAY_MINUTES))


def _minutes_between(first: datetime, last: datetime) -> int:
    return round((last - first).total_seconds()) // _MINUTE_SECONDS + 1


def _members(outcomes: DataFrame) -> list[Row]:
    """By group and member, the ones with the most failed deliveries first."""
    failed = _is_cause(Cause.RELEASE) | _is_cause(Cause.LOCK_EXPIRED) | _is_cause(Cause.SESSION_ENDED)
    named = outcomes.where(F.col("member").isNotNull()).groupBy("group", "member")
    counted = named.agg(
        F.sum("recordCount").alias("outcomeCount"),
        _records(_is_cause(Cause.ACCEPT)).alias("acceptedCount"),
        _records(_is_cause(Cause.RELEASE)).alias("releasedCount"),
        _records(_is_cause(Cause.REJECT)).alias("rejectedCount"),
        _records(_is_cause(Cause.LOCK_EXPIRED)).alias("lockExpiredCount"),
        _records(_is_cause(Cause.SESSION_ENDED)).alias("sessionEndedCount"),
        _records(_is_cause(Cause.DELIVERY_LIMIT)).alias("deliveryLimitCount"),
        _records(failed | _is_cause(Cause.DELIVERY_LIMIT)).alias("failedCount"),
        F.min("minute").alias("firstMinute"),
        F.max("minute").alias("lastMinute"),
    )
    return _rows(counted.orderBy(F.desc("lockExpiredCount"), F.desc("failedCount"), F.desc("outcomeCount")))


def _weight() -> Column:
    """Ranges whose dead letter was lost come first, then those at the delivery limit, then rejected ones."""
    is_lost = F.col("letter").eqNullSafe(FAILED)
    is_limit, is_reject = _is_cause(Cause.DELIVERY_LIMIT), _is_cause(Cause.REJECT)
    return F.when(is_lost, 0).when(is_limit, 1).when(is_reject, 2).otherwise(3)


def _is_done() -> Column:
    """Whether the record is done after a delivery, and not open."""
    return ~F.col("outcome").isin(*OPEN_OUTCOMES)


def _is_archived_by_any_cause() -> Column:
    """False if the cause is not recorded, or only tells the end of a dead letter."""
    causes = [CAUSES[cause] for cause in _ARCHIVED_BY.values()]
    return F.coalesce(F.col("cause").isin(*causes), F.lit(False))


def _is_cause(cause: Cause) -> Column:
    return F.col("cause").eqNullSafe(CAUSES[cause])


def _archived_by(cause: Cause) -> Column:
    return (F.col("outcome") == ARCHIVED) & _is_cause(cause)


def _records(which: Column) -> Column:
    return F.sum(F.when(which, F.col("recordCount")).otherwise(0))


def _sums() -> list[Column]:
    return [F.sum("rangeCount").alias("rangeCount"), F.sum("recordCount").alias("recordCount")]


def _rows(found: DataFrame, rows_max: int | None = None) -> list[Row]:
    """The first rows. PySpark's times are those of this machine's time zone: they become UTC."""
    rows = found.limit(ROWS_MAX if rows_max is None else rows_max).collect()
    return [{name: _in_utc(value) for name, value in row.asDict().items()} for row in rows]


def _in_utc(value: object) -> object:
    return value.astimezone(UTC) if isinstance(value, datetime) else value
