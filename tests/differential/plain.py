"""Answers as plain values that can be compared, printed and stored.

Structures become mappings, error codes their names, batches of records their content. Values that a broker
generates (ids of topics, members, producers and sessions) become names by the order of their first
appearance, and are replaced wherever they appear again. So two brokers that generate different ids have equal
answers.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime
import re
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, TypeGuard
from uuid import UUID

from barnabas.protocol.record_batch import BatchHeader, read_header
from barnabas.protocol.records import iterate_records
from barnabas.protocol.varint import RecordFormatError

_MILLISECOND = datetime.timedelta(milliseconds=1)
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_IDS = {"session_id": ("session", 1), "producer_id": ("producer", 0)}
"""Numbers that a broker generates, by the names of their fields: the kind of thing that they identify, and
the smallest of them.
"""

FIRST_OWN_TAG = 10_000
"""The smallest tag of Barnabas's own fields, see docs/protocol.md."""

Plain = Any
"""None, a bool, an int, a str, a list of plain values, or a dict from str to them."""


def is_mapping(value: Any) -> TypeGuard[dict[str, Any]]:
    """Whether it is a structure: its keys are names of fields."""
    return isinstance(value, dict)


def is_list(value: Any) -> TypeGuard[list[Any]]:
    """Whether it is a plain list."""
    return isinstance(value, list)


def is_sequence(value: Any) -> TypeGuard[Sequence[Any]]:
    """Whether it becomes a plain list."""
    return isinstance(value, tuple | list)


class Names:
    """The names of the generated ids of one broker in one history."""

    def __init__(self, unique: str) -> None:
        """`unique` is the part of every name that belongs to this run only."""
        self._unique = unique
        self._names: dict[Any, str] = {}
        self._texts: dict[str, str] = {}

    def of(self, kind: str, made_up: Any) -> str:
        """The name of an id."""
        key = kind, made_up
        if key not in self._names:
            number = 1 + sum(1 for known, _ in self._names if known == kind)
            self._names[key] = f"<{kind} {number}>"
            if isinstance(made_up, UUID):
                encoded = base64.urlsafe_b64encode(made_up.bytes).decode().rstrip("=")
                self._texts[encoded] = self._names[key]
        return self._names[key]

    def in_text(self, text: str) -> str:
        """A text with names in place of its ids."""
        text = _UUID.sub(lambda found: self.of("uuid", found.group()), text)
        for known, name in self._texts.items():
            text = text.replace(known, name)
        return text.replace(self._unique, "")


class Plainly:
    """Turns the answers of one broker in one history into plain values."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def __call__(self, value: Any, field: str = "") -> Plain:
        """`value` is the content of a field of this name, or a whole message."""
        if dataclasses.is_dataclass(value):
            return {
                one.name: self(getattr(value, one.name), one.name)
                for one in dataclasses.fields(value)
                if not _is_absent(value, one)
            }
        if is_sequence(value):
            return [self(item, field) for item in value]
        for kind, turn in self._turns():
            if isinstance(value, kind):
                return turn(value, field)
        assert value is None or isinstance(value, bool | float), (field, value)
        return value

    def _turns(self) -> list[tuple[type, Callable[[Any, str], Plain]]]:
        return [
            (Enum, lambda value, _: value.name),
            (UUID, lambda value, _: self._names.of("id", value) if value.int else None),
            (datetime.timedelta, lambda value, _: value // _MILLISECOND),
            (datetime.datetime, lambda value, _: (value - _EPOCH) // _MILLISECOND),
            (str, lambda value, _: self._names.in_text(value)),
            (bytes, self._bytes),
            (bool, lambda value, _: value),
            (int, self._number),
        ]

    def _number(self, value: int, field: str) -> Plain:
        kind, least = _IDS.get(field, ("", 0))
        return self._names.of(kind, value) if kind and value >= least else int(value)

    def _bytes(self, value: bytes, field: str) -> Plain:
        if field == "records":
            return self._batches(value)
        return self._names.in_text(value.decode("latin1"))

    def _batches(self, data: bytes) -> list[Plain]:
        """The whole batches, and the number of bytes of a batch that is cut short."""
        batches: list[Plain] = []
        position = 0
        while position < len(data):
            try:
                header = read_header(data, position)
            except RecordFormatError:
                header = None
            if header is None or position + header.size_bytes > len(data):
                batches.append({"cut_after_bytes": len(data) - position})
                break
            batches.append(self._batch(header, data[position : position + header.size_bytes]))
            position += header.size_bytes
        return batches

    def _batch(self, header: BatchHeader, data: bytes) -> Plain:
        fields = {name: value for name, value in header._asdict().items() if name not in _NOT_COMPARED}
        plain: dict[str, Plain] = {name: self(value, name) for name, value in fields.items()}
        plain["records"] = self._records(data)
        return plain

    def _records(self, data: bytes) -> list[Plain]:
        return [
            {
                "offset": record.offset,
                "timestamp_ms": record.timestamp_ms,
                "key": self(record.key),
                "value": self(record.value),
                "headers": [[name, self(value)] for name, value in record.headers],
            }
            for record in iterate_records(data)
        ]


def _is_absent(message: Any, field: dataclasses.Field[Any]) -> bool:
    """Whether it is a tagged field of Barnabas's own that the message does not have."""
    tag: int = field.metadata.get("tag", 0)
    return tag >= FIRST_OWN_TAG and bool(getattr(message, field.name) == field.default)


_NOT_COMPARED = frozenset({"crc", "batch_length"})
"""These fields follow from the rest, except the ids of producers."""
