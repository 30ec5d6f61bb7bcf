"""Makes docs/differences.md from the rules of the comparison."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from tests.differential.older_kafka import OLDER_KAFKA
from tests.differential.orders import ORDERS
from tests.differential.rule import Rule
from tests.differential.rules import RULES

_HEAD: Final = """\
# Allowed differences from Apache Kafka's answers

`make diff` plays the same histories on Apache Kafka 4.4.0 and on Barnabas, with both stores for share
state, and compares every field of every answer. With `share.state.store=log` the comparison renumbers offsets
by data records, because share state takes up offsets between them. Only the differences in this list are
allowed: the page is made from the rules of the comparison (`python -m tests.reference`).
[Decision 5](decisions/0005-where-kafka-is-not-copied.md) explains why a few of Kafka's behaviours are not
copied.
"""

_OLDER: Final = """\
`make diff KAFKA=4.3.1` compares with that release, in its versions of the APIs. Then these rules apply, too.
"""


_TOOLS: Final = """\
`barnabas groups` and `barnabas ranges` count the lag of a group from the log start, if its committed offset
lies below that. Apache Kafka's `kafka-consumer-groups` also counts the records that retention or
DeleteRecords has removed. With the committed offset 10, and a log that begins at 1,000 and ends at 1,005, the
lag is 5 here and 995 there.
"""


def rendered() -> str:
    """The page."""
    older = ["## Apache Kafka 4.3.1", "", _OLDER, *_table(OLDER_KAFKA), ""]
    orders = ["## Lists without a defined order", "", *_orders(), ""]
    return "\n".join([_HEAD, *_table(RULES), "", *older, *orders, "## Tools", "", _TOOLS])


def _table(rules: Iterable[Rule]) -> Iterator[str]:
    yield "| difference | fields | Apache Kafka | Barnabas | why |"
    yield "|---|---|---|---|---|"
    for rule in rules:
        fields = ", ".join(f"`{_printable(pattern)}`" for pattern in rule.fields)
        yield f"| {rule.name} | {fields} | {rule.kafka} | {rule.ours} | {rule.why} |"


def _printable(pattern: str) -> str:
    return pattern.encode("unicode_escape").decode()


def _orders() -> Iterator[str]:
    for order in ORDERS:
        fields = ", ".join(f"`{pattern}`" for pattern in order.fields)
        yield f"- {order.why}: {fields}"
