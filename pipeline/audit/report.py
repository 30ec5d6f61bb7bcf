"""The report of an audit: one HTML file that opens anywhere, without scripts and without the internet.

Its contents come from `summary`; `charts` draws the charts, each with its numbers in a table below.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from barnabas.pipeline.audit.charts import Bars, Scale, TimeLane, horizontal_bars, legend, time_lanes
from barnabas.pipeline.audit.checks import MEANINGS, Check
from barnabas.pipeline.audit.page_style import STYLE
from barnabas.pipeline.audit.summary import (
    ACKNOWLEDGED,
    ARCHIVED,
    ARCHIVED_COUNTS,
    AVAILABLE,
    LETTER_NAMES,
    OUTCOME_ORDER,
    ROWS_MAX,
    Row,
    Summary,
    summarise,
)
from barnabas.protocol.counted import counted

if TYPE_CHECKING:
    from barnabas.pipeline.audit.auditing import Audit

BARS_MAX: Final = 15

_NARROW_COLUMNS_MAX: Final = 6
"""A table with more columns is shown row by row in windows of medium width, too."""
_ROWS_SHOWN_MAX: Final = 20
"""Longer tables are folded."""
_NAMES: Final = frozenset({"topic", "group", "member", "detail", "meaning"})
"""Columns with words of any length, which may be broken anywhere."""
_NOTHING: Final = "<p>There is nothing to show.</p>"
_ALWAYS_TOLD: Final = frozenset({"rejectedCount", "deliveryLimitCount"})
_OUTCOME_NAMES: Final = {outcome: outcome for outcome in OUTCOME_ORDER}
_MEMBER_NAMES: Final = {
    ACKNOWLEDGED: "accepted",
    AVAILABLE: "released, or lost with the lock or the session",
    ARCHIVED: "rejected",
}
_SHARE_PARTITION_COLUMNS: Final = (
    "topic",
    "partition",
    "group",
    "begins",
    "beganAt",
    "lastDecidedAt",
    "firstStartOffset",
    "skippedRecordCount",
    "startOffset",
    "endOffset",
    "openRecordCount",
    "violationCount",
)
_WORDS: Final = {
    "deliveryCount": "deliveries",
    "failedDeliveryCount": "failed deliveries",
    "isWhole": "history is whole",
    "openRecordCount": "open",
    "skippedCount": "skipped at the start",
    "skippedRecordCount": "skipped at the start",
    "rangeCount": "ranges",
    "recordCount": "records",
    "violationCount": "violations",
    "lockExpiredCount": "lock expiries",
    "letter": "dead letter",
    **LETTER_NAMES,
}
"""Headings of columns that differ from the words of their names."""

_NOT_KNOWN: Final = """\
<p>The tables show the records of share groups, which are the outcomes of deliveries. An acquisition is never
recorded. So two things are in no table: deliveries that had no outcome when a broker stopped or crashed, and
the time for which a member held a record. If a checkpoint includes the outcomes of its own append, these
records are done or available without a cause. If the start offset passed them at once, they are
<em>unknown</em>: accepted, archived, or removed with the start of the log. Open records that a reset passes
are unknown, too.</p>"""


def write_report(audited: Audit, path: str | Path, *, with_latencies: bool = False) -> Summary:
    """Writes the report to a file and returns its contents. `with_latencies` reads the records, too."""
    summary = summarise(audited, with_latencies=with_latencies)
    Path(path).write_text(render(summary), encoding="utf-8")
    return summary


def render(summary: Summary) -> str:
    """The page."""
    sections = [
        _section("Violations", _violations(summary)),
        _section("Groups", _groups(summary)),
        _section("Outcomes over time", _times(summary)),
        _section("Why deliveries ended", _causes(summary)),
        _section("Deliveries that a record took", _delivery_counts(summary)),
        _section("Members", _members(summary)),
        _section("Poison records", _poison(summary)),
        _section("Where history begins", _share_partitions(summary)),
        _section("Gaps in the history", _NOT_KNOWN),
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Audit of share groups</title><style>{STYLE}</style></head>"
        f"<body><main><h1>Audit of share groups</h1>{_headline(summary)}{''.join(sections)}"
        "</main></body></html>\n"
    )


def _headline(summary: Summary) -> str:
    totals = summary.totals()
    count = totals["violationCount"]
    found = f"{count:,} violation{' was' if count == 1 else 's were'} found."
    verdict = found if count else "No check found anything wrong."
    mood = "good" if not count else "bad"
    facts = [
        ("Share-partitions", totals["sharePartitionCount"]),
        ("Acknowledged", totals.get("acknowledgedCount", 0)),
        ("Failed deliveries", totals.get("failedDeliveryCount", 0)),
        ("At the delivery limit", totals.get("deliveryLimitCount", 0)),
        ("Rejected", totals.get("rejectedCount", 0)),
        ("Skipped", totals.get("skippedCount", 0)),
        ("Open", totals.get("openCount", 0)),
        ("Unknown", totals.get("unknownCount", 0)),
    ]
    if any(totals.get(name) for name in LETTER_NAMES):
        facts += [(name.capitalize(), totals[count]) for count, name in LETTER_NAMES.items()]
    items = "".join(f"<div><dt>{escape(name)}</dt><dd>{_counted(value)}</dd></div>" for name, value in facts)
    return f'<p class="verdict {mood}">{verdict}</p><dl class="facts">{items}</dl>'


def _counted(count: int | None) -> str:
    return "not known" if count is None else f"{count:,}"


def _violations(summary: Summary) -> str:
    if not summary.checks:
        return "<p>Every control record agrees with those before it.</p>"
    checks = [{**row, "meaning": MEANINGS[Check(row["check"])]} for row in summary.checks]
    return _table("By check", checks) + _table("Violations", summary.violations)


def _groups(summary: Summary) -> str:
    """Three tables: one with all columns would be too wide."""
    records = [
        {
            "topic": row["topic"],
            "group": row["group"],
            "skippedCount": row["skippedCount"],
            "acknowledgedCount": row["acknowledgedCount"],
            **{name: row[name] for name in ARCHIVED_COUNTS if _is_told(name, summary.groups)},
            "unknownCount": row["unknownCount"],
            "openCount": row["openCount"],
        }
        for row in summary.groups
    ]
    letters = [
        {"topic": row["topic"], "group": row["group"], **{name: row[name] for name in LETTER_NAMES}}
        for row in summary.groups
        if any(row[name] for name in LETTER_NAMES)
    ]
    deliveries = [
        {
            "topic": row["topic"],
            "group": row["group"],
            "failedDeliveryCount": row["failedDeliveryCount"],
            "lockExpiredCount": row["lockExpiredCount"],
            "redeliveredCount": row["redeliveredCount"],
            "redeliveryRate": _rate(row["redeliveredCount"], row["countedCount"]),
            "beganAt": row["beganAt"],
            "lastDecidedAt": row["lastDecidedAt"],
            "isWhole": row["isWhole"],
        }
        for row in summary.groups
    ]
    return (
        _table("Outcomes of the records, by topic and group", records)
        + "<p>Counts are of records. <em>Open</em> records are not finished: new ones, released ones, those "
        "that a member holds, and those on the way to a dead letter. Records <em>skipped at the start</em> "
        "are below the offset where the group began. Records with a dead letter count under their causes.</p>"
        + _table("Their dead letters", letters)
        + _table("Their deliveries", deliveries)
        + "<p>The redelivery rate is the share of finished records that took more than one delivery. A lock "
        "that expires at the delivery limit counts as <em>delivery limit</em>.</p>"
    )


def _is_told(name: str, rows: Sequence[Row]) -> bool:
    """Whether a column is shown: those of rare causes only if there are such records."""
    return name in _ALWAYS_TOLD or any(row[name] for row in rows)


def _times(summary: Summary) -> str:
    minutes = summary.bucket_seconds // 60
    step = "minute" if minutes == 1 else f"{minutes} minutes"
    lanes = [
        TimeLane(
            outcome, {row["from"]: row["recordCount"] for row in summary.times if row["outcome"] == outcome}
        )
        for outcome in OUTCOME_ORDER
    ]
    lanes = [lane for lane in lanes if lane.values]
    if not lanes:
        return _NOTHING
    scale = Scale(value for lane in lanes for value in lane.values.values())
    moments = [row["from"] for row in summary.times]
    text = (
        f"Records by outcome, one bar for each {step} from {min(moments):%Y-%m-%d %H:%M} "
        f"to {max(moments):%Y-%m-%d %H:%M} UTC."
    )
    chart = time_lanes(text, lanes, timedelta(seconds=summary.bucket_seconds), scale)
    return _chart(chart, summary.times, text + scale.hint)


def _causes(summary: Summary) -> str:
    rows = [
        Bars(_cause_label(row), {row["outcome"]: row["recordCount"]}) for row in summary.causes[:BARS_MAX]
    ]
    numbers = _with_letters_if_any(summary.causes)
    return _horizontal_chart("Records by outcome and cause.", rows, numbers, _OUTCOME_NAMES)


def _cause_label(row: Row) -> str:
    label = f"{row['outcome']}: {_spoken(row['cause'])}"
    return label if row["letter"] is None else f"{label}, dead letter {row['letter']}"


def _with_letters_if_any(rows: Sequence[Row]) -> list[Row]:
    """The rows; without the column of the letters if there are none."""
    if any(row["letter"] is not None for row in rows):
        return list(rows)
    return [{name: value for name, value in row.items() if name != "letter"} for row in rows]


def _delivery_counts(summary: Summary) -> str:
    rows = [
        Bars(f"{delivery_count} deliveries" if delivery_count != 1 else "1 delivery", values)
        for delivery_count, values in _grouped(summary.delivery_counts, "deliveryCount").items()
    ]
    text = "Finished records, by the number of deliveries that they took."
    return _horizontal_chart(text, rows[:BARS_MAX], summary.delivery_counts, _OUTCOME_NAMES)


def _members(summary: Summary) -> str:
    rows = [Bars(row["member"], _member_parts(row)) for row in summary.members[:BARS_MAX]]
    text = "Records by member; the members with the most expired locks are first."
    chart = _horizontal_chart(text, rows, summary.members, _MEMBER_NAMES)
    if summary.latencies is None:
        return chart + "<p>The records themselves were not read, so how long they waited is not known.</p>"
    return chart + _table("From a record's timestamp to its final outcome", summary.latencies)


def _horizontal_chart(text: str, bars: Sequence[Bars], rows: Sequence[Row], names: Mapping[str, str]) -> str:
    if not bars:
        return _NOTHING
    scale = Scale(value for row in bars for value in row.values.values())
    used = {series for row in bars for series in row.values}
    keys = legend({series: name for series, name in names.items() if series in used})
    return _chart(keys + horizontal_bars(text, bars, scale), rows, text + scale.hint)


def _member_parts(row: Row) -> dict[str, int]:
    parts = {
        "acknowledged": row["acceptedCount"],
        "available": row["failedCount"],
        "archived": row["rejectedCount"],
    }
    return {series: value for series, value in parts.items() if value}


def _poison(summary: Summary) -> str:
    if not summary.poison:
        return "<p>Every record was finished with its first delivery.</p>"
    rows = [
        {
            "topic": row["topic"],
            "partition": row["partition"],
            "group": row["group"],
            "offsets": _offsets(row["firstOffset"], row["lastOffset"]),
            "recordCount": row["recordCount"],
            "deliveryCount": row["deliveryCount"],
            "outcome": row["outcome"],
            "cause": row["cause"],
            "letter": row["letter"],
            "member": row["member"],
            "decidedAt": row["decidedAt"],
        }
        for row in summary.poison
    ]
    text = "The worst ranges of records: at the delivery limit, rejected, delivered most"
    return _table(text, _with_letters_if_any(rows))


def _share_partitions(summary: Summary) -> str:
    text = (
        "<p><em>whole</em>: from the group's first record in this log on. <em>cut</em>: earlier control "
        "records were cleaned or removed with the start of the log; their outcomes are in no table. The "
        "group never gets the records that it <em>skipped at the start</em>: those in the log below the "
        "offset where it began. Their number is not known if the history is cut.</p>"
    )
    rows = [{name: row[name] for name in _SHARE_PARTITION_COLUMNS} for row in summary.share_partitions]
    return text + _table("Share-partitions", rows)


def _offsets(first: int, last: int) -> str:
    return f"{first:,}" if first == last else f"{first:,} to {last:,}"


def _grouped(rows: Sequence[Row], key: str) -> dict[Any, dict[str, int]]:
    """By the key, records by outcome in one order."""
    grouped: dict[Any, dict[str, int]] = {}
    for row in rows:
        grouped.setdefault(row[key], dict.fromkeys(OUTCOME_ORDER, 0))[row["outcome"]] += row["recordCount"]
    return {
        name: {outcome: value for outcome, value in parts.items() if value} for name, parts in grouped.items()
    }


def _chart(drawn: str, rows: Sequence[Row], text: str) -> str:
    figure = f"<figure><figcaption>{escape(text)}</figcaption>{drawn}</figure>"
    numbers = _table(f"{text} The numbers.", rows, is_named=False)
    return f"{figure}<details><summary>The numbers</summary>{numbers}</details>"


def _table(name: str, rows: Sequence[Row], *, is_named: bool = True) -> str:
    """A table; `is_named` False leaves out the caption, if the same text stands above it."""
    if not rows:
        return ""
    head = "".join(_head(name, [row[name] for row in rows]) for name in rows[0])
    body = "".join("<tr>" + "".join(_cell(name, row[name]) for name in row) + "</tr>" for row in rows)
    more = f" (the first {ROWS_MAX})" if len(rows) == ROWS_MAX else ""
    caption = f"<caption>{escape(name)}{more}</caption>" if is_named else ""
    wide = ' class="wide"' if len(rows[0]) > _NARROW_COLUMNS_MAX else ""
    table = (
        f'<table{wide} aria-label="{escape(name)}">'
        f"{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )
    return (
        f"<details><summary>{counted(len(rows), 'row')}</summary>{table}</details>"
        if _is_long(rows, is_named)
        else table
    )


def _is_long(rows: Sequence[Row], is_named: bool) -> bool:
    """Whether a table is folded; a table without a caption is in a folded part already."""
    return is_named and len(rows) > _ROWS_SHOWN_MAX


def _head(name: str, values: Sequence[object]) -> str:
    """The name of a column stands above its values; numbers are on the right."""
    is_number = any(_is_number(value) for value in values)
    return f'<th scope="col" class="{"number" if is_number else "text"}">{escape(_words(name))}</th>'


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _cell(name: str, value: object) -> str:
    kind = "number" if _is_number(value) else "name" if name in _NAMES else "text"
    shown = (
        _day_and_time(value) if isinstance(value, datetime) else escape(_shown(value)).replace("_", "_<wbr>")
    )
    return f'<td class="{kind}" data-name="{escape(_words(name))}">{shown}</td>'


def _shown(value: object) -> str:
    if value is None:
        return "\N{EN DASH}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _day_and_time(value: datetime) -> str:
    """The time in one line, or in two with the date above the time."""
    return f'<span class="day">{value:%Y-%m-%d}</span> {value:%H:%M}'


def _spoken(cause: str | None) -> str:
    return "not recorded" if cause is None else cause.replace("_", " ")


def _rate(part: int, whole: int) -> str:
    return f"{part / whole:.2%}" if whole else ""


def _words(name: str) -> str:
    """`deliveryCount` as words."""
    if name in _WORDS:
        return _WORDS[name]
    return "".join(
        f" {character.lower()}" if character.isupper() else character for character in name
    ).removesuffix(" count")


def _section(title: str, body: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{body}</section>"
