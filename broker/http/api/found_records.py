"""Records that a search has found, as text, so that a browser can show them. Their length is bounded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from msgspec import Struct

from barnabas.protocol.records import Record

SHOWN_CHARACTERS_MAX: Final = 1_000
"""A longer key, value, or name or value of a header is cut in the answer."""

SHOWN_HEADERS_MAX: Final = 100
"""Further headers are left out of the answer."""

_CHARACTER_BYTES_MAX: Final = 4

Field = Literal["key", "header", "value"]
FIELDS: tuple[Field, ...] = ("key", "header", "value")


class FoundHeader(Struct, kw_only=True):
    """A header; its value as text, with replacement characters for bytes that are not UTF-8."""

    name: str
    value: str | None


class FoundRecord(Struct, kw_only=True):
    """A record that has the text. `key` and `value` are text, as in a header."""

    offset: int
    timestamp_ms: int
    key: str | None
    value: str | None
    headers: Sequence[FoundHeader]
    found_in: Sequence[Field]

    @property
    def character_count(self) -> int:
        """The size of the texts."""
        texts = [self.key, self.value]
        for header in self.headers:
            texts += (header.name, header.value)
        return sum(len(text) for text in texts if text is not None)


def find_in(record: Record, text: bytes, fields: Sequence[Field]) -> FoundRecord | None:
    """The record, if one of the fields has the text; a name and a value of a header are two texts."""
    found_in: list[Field] = [field for field in fields if _has(record, text, field)]
    return _found(record, found_in) if found_in else None


def _has(record: Record, text: bytes, field: Field) -> bool:
    if field == "key":
        return record.key is not None and text in record.key
    if field == "value":
        return record.value is not None and text in record.value
    return any(text in name.encode() or (value and text in value) for name, value in record.headers)


def _found(record: Record, found_in: Sequence[Field]) -> FoundRecord:
    headers = record.headers[:SHOWN_HEADERS_MAX]
    return FoundRecord(
        offset=record.offset,
        timestamp_ms=record.timestamp_ms,
        key=_text(record.key),
        value=_text(record.value),
        headers=[
            FoundHeader(name=name[:SHOWN_CHARACTERS_MAX], value=_text(value)) for name, value in headers
        ],
        found_in=found_in,
    )


def _text(content: bytes | None) -> str | None:
    """The start of the content as text."""
    if content is None:
        return None
    start = content[: SHOWN_CHARACTERS_MAX * _CHARACTER_BYTES_MAX]  # has all characters that are shown
    return start.decode("utf-8", "replace")[:SHOWN_CHARACTERS_MAX]
