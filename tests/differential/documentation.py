"""docs/differences.md, made of the rules that the comparison goes by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from tests.differential.older_kafka import OLDER_KAFKA
from tests.differential.orders import ORDERS
from tests.differential.rule import Rule
from tests.differential.rules import RULES

PAGE: Final = Path(__file__).parents[2] / "docs" / "differences.md"

_HEAD: Final = """\
# Where answers may differ from Apache Kafka's

`make diff` plays the same histories on Apache Kafka 4.4.0 and on this broker, with both stores for share
state, and compares every field of every answer. With `share.state.store=log` offsets are compared as the
numbers of data records, since the broker's own records take up offsets between them. What may differ is this
list and nothing else: the page is made of the rules that the comparison goes by
(`python -m tests.differential --docs`). Why Kafka's behaviour is not copied in a few places says
[decision 5](decisions/0005-where-kafka-is-not-copied.md).
"""

_OLDER: Final = """\
`make diff KAFKA=4.3.1` compares with that release, in the versions of the APIs that it has. These rules apply
then as well.
"""


def rendered() -> str:
    """The page."""
    older = ["## Apache Kafka 4.3.1", "", _OLDER, *_table(OLDER_KAFKA), ""]
    return "\n".join(
        [_HEAD, *_table(RULES), "", *older, "## Lists whose order means nothing", "", *_orders(), ""]
    )


def _table(rules: Iterable[Rule]) -> Iterator[str]:
    yield "| difference | fields | Apache Kafka | here | why |"
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
