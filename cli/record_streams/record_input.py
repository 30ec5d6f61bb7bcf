"""Records from lines of text or of JSON. Pure.

A line of JSON is an object with the entries `value`, `key`, `headers`, `partition` and `timestamp_ms`, all of
them optional. Bytes that are no text are in base64, in `value_base64` and `key_base64`. Other entries are
ignored, so the output of `barnabas consume --json` is a valid input.
"""

from __future__ import annotations

import binascii
import json
from base64 import b64decode
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

from barnabas.protocol.records import Header


class InputError(ValueError):
    """A line is no record; the message says the reason."""


class NewRecord(NamedTuple):
    """A record to produce. The partition None is chosen by the key."""

    value: bytes | None
    key: bytes | None = None
    headers: Sequence[Header] = ()
    partition: int | None = None
    timestamp_ms: int | None = None


def record_of_line(line: bytes, key_separator: bytes | None) -> NewRecord:
    """The line as the value; with a separator, the part before it is the key.

    Raises `InputError` if the line lacks the separator.
    """
    if key_separator is None:
        return NewRecord(line)
    key, found, value = line.partition(key_separator)
    if not found:
        raise InputError(f"it has no key separator {key_separator.decode(errors='replace')!r}")
    return NewRecord(value, key)


def record_of_json(line: bytes) -> NewRecord:
    """Raises `InputError`."""
    try:
        entries: object = json.loads(line)
    except ValueError as error:
        raise InputError(f"it is not JSON ({error})") from error
    if not isinstance(entries, dict):
        raise InputError("it is not a JSON object")
    given = cast("Mapping[str, Any]", entries)
    return NewRecord(
        _bytes(given, "value"),
        _bytes(given, "key"),
        _headers(given),
        _number(given, "partition"),
        _number(given, "timestamp_ms"),
    )


def _bytes(entries: Mapping[str, Any], name: str) -> bytes | None:
    encoded = entries.get(f"{name}_base64")
    if encoded is not None:
        try:
            return b64decode(encoded, validate=True)
        except (binascii.Error, TypeError, ValueError) as error:
            raise InputError(f"its {name}_base64 is not in base64") from error
    value = entries.get(name)
    if value is None or isinstance(value, str):
        return None if value is None else value.encode()
    return json.dumps(value, ensure_ascii=False).encode()


def _number(entries: Mapping[str, Any], name: str) -> int | None:
    value = entries.get(name)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
        raise InputError(f"its {name} is not a number from 0 on")
    return value


def _headers(entries: Mapping[str, Any]) -> list[Header]:
    given: object = entries.get("headers") or []
    headers = cast("list[object]", given) if isinstance(given, list) else [given]
    return [_header(header) for header in headers]


def _header(entry: object) -> Header:
    if not isinstance(entry, dict):
        raise InputError('its headers are not a list of objects such as {"key": "trace", "value": "1"}')
    given = cast("Mapping[str, Any]", entry)
    name = given.get("key")
    if not isinstance(name, str):
        raise InputError("a header has no key")
    return name, _bytes(given, "value")
