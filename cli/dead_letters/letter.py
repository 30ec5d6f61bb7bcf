"""One dead letter of a topic, as a client reads it (KIP-1191, "Dead-letter queue record"). Pure.

Its headers begin with six of the broker's own (`protocol/dead_letter`). Key and value are those of the source
record if the group has `errors.deadletterqueue.copy.record.enable`, else null. All other headers are the
source record's: Barnabas copies them with `share.dead.letter.copy.headers.enable`, Apache Kafka never.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from barnabas.protocol.dead_letter import DELIVERY_COUNT, GROUP, MESSAGE, OFFSET, PARTITION, TOPIC
from barnabas.protocol.records import Header, Record

_OWN_HEADERS: Final = (TOPIC, PARTITION, OFFSET, GROUP, DELIVERY_COUNT, MESSAGE)


class SourcePosition(NamedTuple):
    """The place of a record that became a letter."""

    topic: str
    partition: int
    offset: int


class Letter(NamedTuple):
    """One letter of a dead letter topic."""

    partition: int
    """The partition of the dead letter topic."""
    offset: int
    """The offset in it."""
    timestamp_ms: int
    """When the letter was written, by the broker's clock."""
    source: SourcePosition
    group: str
    delivery_count: int
    reason: str
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]
    """The headers of the source record, if the letter has them."""

    @property
    def has_copy(self) -> bool:
        """Whether it holds the record. A copied record without key and value is not recognised."""
        return self.key is not None or self.value is not None


class NotALetter(NamedTuple):
    """A record in a dead letter topic that no broker has written as a letter."""

    partition: int
    offset: int
    timestamp_ms: int
    reason: str


def parse_letter(partition: int, record: Record) -> Letter | NotALetter:
    """The letter in a record of this partition of the dead letter topic.

    The first header of each name is the broker's: a source record may be a letter itself.
    """
    own: dict[str, bytes | None] = {}
    others: list[Header] = []
    for name, value in record.headers:
        if name in _OWN_HEADERS and name not in own:
            own[name] = value
        else:
            others.append((name, value))
    try:
        text = {name: _text(name, own.get(name)) for name in _OWN_HEADERS}
        source = SourcePosition(text[TOPIC], _number(PARTITION, text), _number(OFFSET, text))
        delivery_count = _number(DELIVERY_COUNT, text)
    except ValueError as error:
        return NotALetter(partition, record.offset, record.timestamp_ms, str(error))
    return Letter(
        partition,
        record.offset,
        record.timestamp_ms,
        source,
        text[GROUP],
        delivery_count,
        text[MESSAGE],
        record.key,
        record.value,
        tuple(others),
    )


def _text(name: str, value: bytes | None) -> str:
    """Raises ValueError."""
    if value is None:
        raise ValueError(f"it has no header {name}")
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"its header {name} is not UTF-8") from error


def _number(name: str, text: dict[str, str]) -> int:
    """Raises ValueError."""
    digits = text[name]
    if not (digits.isascii() and digits.isdecimal()):
        raise ValueError(f"its header {name} is {digits!r}, which is not a number")
    return int(digits)
