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


def rendered() -> str:
    """The page."""
    older = ["## Apache Kafka 4.3.1", "", _OLDER, *_table(OLDER_KAFKA), ""]
    return "\n".join(
        [_HEAD, *_table(RULES), "", *older, "## Lists without a defined order", "", *_orders(), ""]
    )


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
