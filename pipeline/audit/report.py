"""The report of an audit: one HTML file that opens anywhere, without scripts and without the internet.

What it says comes from `summary`; the charts are drawn by `charts`, each with its numbers in a table below.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from barnabas.pipeline.audit.charts import Bar, legend, lying_bars, standing_bars
from barnabas.pipeline.audit.checks import MEANINGS, Check
from barnabas.pipeline.audit.page_style import STYLE
from barnabas.pipeline.audit.summary import OUTCOME_ORDER, ROWS_MAX, Row, Summary, summarise

if TYPE_CHECKING:
    from barnabas.pipeline.audit.auditing import Audit

BARS_MAX: Final = 15

_NOT_KNOWN: Final = """\
<p>What is known is what share groups recorded: the outcomes of deliveries. That a record was acquired is
never recorded, so a delivery that had no outcome when a broker stopped or crashed is in no table; nor is how
long a member held a record. Where a checkpoint took the outcomes of its own append along, the records are
done or available without a cause, and where the start offset passed them at once they are
<em>unknown</em>: accepted, archived, or gone with the start of the log.</p>"""


def write_report(audited: Audit, path: str | Path, *, with_latencies: bool = False) -> Summary:
    """Writes the report to a file and answers what it says. `with_latencies` reads the records, too."""
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
        _section("What is not known", _NOT_KNOWN),
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
        ("Lock expiries", totals.get("lockExpiredCount", 0)),
        ("At the delivery limit", totals.get("deliveryLimitCount", 0)),
        ("Rejected", totals.get("rejectedCount", 0)),
        ("Open", totals.get("openCount", 0)),
        ("Unknown", totals.get("unknownCount", 0)),
    ]
    items = "".join(f"<div><dt>{escape(name)}</dt><dd>{value:,}</dd></div>" for name, value in facts)
    return f'<p class="verdict {mood}">{verdict}</p><dl class="facts">{items}</dl>'


def _violations(summary: Summary) -> str:
    if not summary.checks:
        return "<p>Every control record follows from those before it.</p>"
    checks = [{**row, "meaning": MEANINGS[Check(row["check"])]} for row in summary.checks]
    return _table("By check", checks) + _table("Violations", summary.violations)


def _groups(summary: Summary) -> str:
    rows = [
        {**row, "redeliveryRate": _rate(row["redeliveredCount"], row["countedCount"])}
        for row in summary.groups
    ]
    return _table(
        "What became of the records, by topic and group",
        rows,
        without=("countedCount",),
    ) + (
        "<p>Counts are of records. The redelivery rate is the share of records done that took more than one "
        "delivery. Lock expiries at the delivery limit count as <em>delivery limit</em>.</p>"
    )


def _times(summary: Summary) -> str:
    bars = [Bar(_moment(start), parts) for start, parts in _grouped(summary.times, "from").items()]
    text = f"Records by outcome, in steps of {summary.bucket_seconds // 60} minutes."
    return _chart(standing_bars("Outcomes over time", text, bars), summary.times, text)


def _causes(summary: Summary) -> str:
    bars = [
        Bar(f"{row['outcome']}: {row['cause'] or 'not recorded'}", {row["outcome"]: row["recordCount"]})
        for row in summary.causes[:BARS_MAX]
    ]
    text = "Records by outcome and cause."
    return _chart(lying_bars("Causes", text, bars), summary.causes, text)


def _delivery_counts(summary: Summary) -> str:
    bars = [
        Bar(f"{delivery_count} deliveries" if delivery_count != 1 else "1 delivery", parts)
        for delivery_count, parts in _grouped(summary.delivery_counts, "deliveryCount").items()
    ]
    text = "Records done, by the number of deliveries that they took."
    return _chart(lying_bars("Delivery counts", text, bars[:BARS_MAX]), summary.delivery_counts, text)


def _members(summary: Summary) -> str:
    bars = [Bar(row["member"], _member_parts(row)) for row in summary.members[:BARS_MAX]]
    text = "Records by member: accepted, rejected, and given back or lost with the lock or the session."
    chart = _chart(lying_bars("Members with the most lock expiries", text, bars), summary.members, text)
    if summary.latencies is None:
        return chart + "<p>The records themselves were not read, so how long they waited isn't known.</p>"
    return chart + _table("From a record's timestamp to its final outcome", summary.latencies)


def _member_parts(row: Row) -> dict[str, int]:
    return {
        "acknowledged": row["acceptedCount"],
        "available": row["failedCount"],
        "archived": row["rejectedCount"],
    }


def _poison(summary: Summary) -> str:
    if not summary.poison:
        return "<p>Every record was done with its first delivery.</p>"
    return _table(
        "The worst ranges of records: at the delivery limit, rejected, delivered most", summary.poison
    )


def _share_partitions(summary: Summary) -> str:
    text = (
        "<p><em>whole</em>: from the group's first record in this log on. <em>cut</em>: earlier control "
        "records were cleaned away or went with the start of the log, and what they told is in no table.</p>"
    )
    return text + _table("Share-partitions", summary.share_partitions)


def _grouped(rows: Sequence[Row], key: str) -> dict[Any, dict[str, int]]:
    """By the key, records by outcome in one order."""
    grouped: dict[Any, dict[str, int]] = {}
    for row in rows:
        grouped.setdefault(row[key], dict.fromkeys(OUTCOME_ORDER, 0))[row["outcome"]] += row["recordCount"]
    return {
        name: {outcome: value for outcome, value in parts.items() if value} for name, parts in grouped.items()
    }


def _chart(svg: str, rows: Sequence[Row], text: str) -> str:
    if not rows:
        return "<p>There is nothing to show.</p>"
    caption = f"<figcaption>{escape(text)}</figcaption>"
    return f"<figure>{svg}{legend(OUTCOME_ORDER)}{caption}</figure>{_table(text, rows)}"


def _table(caption: str, rows: Sequence[Row], *, without: Sequence[str] = ()) -> str:
    if not rows:
        return ""
    names = [name for name in rows[0] if name not in without]
    head = "".join(f'<th scope="col">{escape(_words(name))}</th>' for name in names)
    body = "".join("<tr>" + "".join(_cell(row[name]) for name in names) + "</tr>" for row in rows)
    more = f" (the first {ROWS_MAX})" if len(rows) == ROWS_MAX else ""
    return (
        f'<div class="table" tabindex="0" role="region" aria-label="{escape(caption)}"><table>'
        f"<caption>{escape(caption)}{more}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def _cell(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return f"<td>{'' if value is None else 'yes' if value else 'no'}</td>"
    if isinstance(value, int):
        return f'<td class="number">{value:,}</td>'
    if isinstance(value, datetime):
        return f"<td>{_moment(value)}</td>"
    return f"<td>{escape(str(value))}</td>"


def _moment(value: datetime) -> str:
    return f"{value:%Y-%m-%d %H:%M}"


def _rate(part: int, whole: int) -> str:
    return f"{part / whole:.2%}" if whole else ""


def _words(name: str) -> str:
    """`deliveryCount` as words."""
    return "".join(f" {one.lower()}" if one.isupper() else one for one in name).removesuffix(" count")


def _section(title: str, body: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{body}</section>"
