"""The contents of reports, made by hand: large and small numbers, long names, quiet hours."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from barnabas.pipeline.audit.summary import Row, Summary

BEGAN = datetime(2026, 1, 31, 22, 40, tzinfo=UTC)
LONG_MEMBER = "a1b2c3d4e5f60718293a4b5c6d7e8f90-checkout-worker-of-the-second-floor"
GROUPS = ("workers", "a-group-with-a-long-name-that-somebody-generated-from-parts-01", "billing <b>")


def group_row(number: int, group: str) -> Row:
    return {
        "topic": "orders" if number else "orders.of-a-region.with-a-long-name",
        "group": group,
        "openCount": 1_204_332 * number + 12,
        "skippedCount": 40 * number if number != 1 else None,
        "beganAt": BEGAN,
        "lastDecidedAt": BEGAN + timedelta(hours=3),
        "isWhole": number != 1,
        "acknowledgedCount": 1_000_000_000 // (1 + number * 999),
        "rejectedCount": 3 * number,
        "deliveryLimitCount": 7,
        "gapCount": 0,
        "logStartCount": 0,
        "transactionAbortedCount": 12 * number,
        "expiredCount": 4 * number,
        "adminCount": number,
        "archivedWithoutCauseCount": 0,
        "dueLetterCount": 2 * number,
        "writtenLetterCount": 9 * number,
        "lostLetterCount": number // 2,
        "unknownLetterCount": 0,
        "unknownCount": 0,
        "failedDeliveryCount": 12_345,
        "lockExpiredCount": 123,
        "redeliveredCount": 12_000,
        "countedCount": 1_000_000,
    }


def member_row(number: int, member: str) -> Row:
    counts = {
        "outcomeCount": 2_000_000 // (number * number * 40 + 1),
        "acceptedCount": 1_900_000 // (number * number * 40 + 1),
        "releasedCount": number,
        "rejectedCount": 2 * (number % 2),
        "lockExpiredCount": 40 - number,
        "sessionEndedCount": 1,
        "deliveryLimitCount": 0,
        "failedCount": 41,
    }
    return {
        "group": GROUPS[0],
        "member": member,
        **counts,
        "firstMinute": BEGAN,
        "lastMinute": BEGAN + timedelta(hours=3),
    }


def time_rows() -> list[Row]:
    """One minute of a million records, some of a few, and quiet ones between them."""
    counts = {0: 40, 1: 55, 2: 1_000_000, 3: 30, 20: 5, 21: 1, 40: 900, 55: 12}
    rows = [
        {
            "from": BEGAN + timedelta(minutes=at),
            "outcome": "acknowledged",
            "rangeCount": 1,
            "recordCount": count,
        }
        for at, count in counts.items()
    ]
    return [
        *rows,
        {"from": BEGAN + timedelta(minutes=3), "outcome": "available", "rangeCount": 2, "recordCount": 7},
        {"from": BEGAN + timedelta(minutes=21), "outcome": "archived", "rangeCount": 1, "recordCount": 2},
        {"from": BEGAN + timedelta(minutes=55), "outcome": "archiving", "rangeCount": 1, "recordCount": 2},
    ]


def delivery_count_rows() -> list[Row]:
    counts = {1: 999_000, 2: 1_200, 3: 45, 4: 6, 5: 2}
    rows: list[Row] = [
        {"deliveryCount": number, "outcome": "acknowledged", "rangeCount": 9, "recordCount": count}
        for number, count in counts.items()
    ]
    return [*rows, {"deliveryCount": 5, "outcome": "archived", "rangeCount": 7, "recordCount": 7}]


def cause_row(outcome: str, cause: str | None, record_count: int, letter: str | None = None) -> Row:
    return {
        "outcome": outcome,
        "cause": cause,
        "letter": letter,
        "rangeCount": 1,
        "recordCount": record_count,
    }


def poison_row(number: int) -> Row:
    return {
        "topic": "orders",
        "partition": number % 4,
        "group": GROUPS[number % 3],
        "firstOffset": 1_000_000 + number * 17,
        "lastOffset": 1_000_000 + number * 17 + number % 2,
        "recordCount": 1 + number % 2,
        "deliveryCount": 5,
        "outcome": "archived",
        "cause": "delivery_limit",
        "letter": ("failed", "written", None)[number % 3],
        "member": LONG_MEMBER if number % 2 else None,
        "decidedAt": BEGAN + timedelta(minutes=number),
        "controlOffset": 1_000_100 + number,
    }


def share_partition_row(number: int) -> Row:
    return {
        "topic": "orders",
        "partition": number,
        "group": GROUPS[number % 3],
        "begins": "whole",
        "beganAt": BEGAN,
        "lastDecidedAt": BEGAN + timedelta(hours=3),
        "firstStartOffset": 0 if number else 40,
        "skippedRecordCount": 0 if number else 40,
        "startOffset": 1_000_000 * number,
        "endOffset": 1_000_000 * number + 400,
        "openRecordCount": 12,
        "violationCount": 0,
    }


def _group_sums(groups: Sequence[Row]) -> Row:
    """The sums of the counts; None if one of them is not known."""
    counts = {name: [row[name] for row in groups] for name in groups[0] if name.endswith("Count")}
    sums: Row = {name: None if None in given else sum(given) for name, given in counts.items()}
    return {**sums, "groupCount": len(groups)}


def full_summary() -> Summary:
    """A report with something in every section."""
    groups = [group_row(number, group) for number, group in enumerate(GROUPS)]
    members = ["anna", LONG_MEMBER, *(f"worker-{number}" for number in range(8))]
    return Summary(
        groups=groups,
        group_sums=_group_sums(groups),
        causes=[
            cause_row("acknowledged", "accept", 999_000_000),
            cause_row("available", "release", 12_222),
            cause_row("archived", "delivery_limit", 7, "written"),
            cause_row("archiving", "reject", 2, "due"),
            cause_row("acknowledged", None, 1),
        ],
        delivery_counts=delivery_count_rows(),
        times=time_rows(),
        bucket_seconds=60,
        members=[member_row(number, member) for number, member in enumerate(members)],
        poison=[poison_row(number) for number in range(12)],
        checks=[{"check": "final_changed", "violationCount": 2}],
        violations=[
            {
                "topic": "orders",
                "partition": 0,
                "group": group,
                "check": "final_changed",
                "controlOffset": 1_000_100,
                "firstOffset": 1_000_000,
                "lastOffset": 1_000_000,
                "detail": "Acknowledged with delivery count 1 became Available with delivery count 2",
            }
            for group in GROUPS[:2]
        ],
        share_partitions=[share_partition_row(number) for number in range(8)],
        share_partition_count=8,
        latencies=[
            {
                "topic": "orders",
                "group": GROUPS[0],
                "member": LONG_MEMBER,
                "recordCount": 1_000_000,
                "medianMs": 12,
                "p99Ms": 4_000,
                "maxMs": 3_600_000,
            }
        ],
    )
