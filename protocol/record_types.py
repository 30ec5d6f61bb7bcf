"""Coordinator records by their types: what each key and value is, and how they are framed.

A key is int16 record type and fields, without compact lengths; a value int16 version, 0 in all of them, and
fields in flexible encoding; no value (a tombstone) deletes what the key names. Which types there are is for
`group_records` and `consumer_group_records`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from barnabas.protocol import schema
from barnabas.protocol.record_prefix import PREFIX_BYTES, prefix, read_prefix
from barnabas.protocol.varint import Buffer, RecordFormatError

_VALUE_VERSION = 0

Key = TypeVar("Key")
Value = TypeVar("Value")


class RecordTypes(Generic[Key, Value]):
    """The classes of keys and values, by the number of their type."""

    def __init__(self, classes: Mapping[int, tuple[type[Key], type[Value]]]) -> None:
        self._classes: Mapping[int, tuple[type[Any], type[Any]]] = classes
        self._numbers = {key_class: number for number, (key_class, _) in classes.items()}

    def encode_key(self, key: Key) -> bytes:
        """The record's key, its type in front."""
        record: Any = key
        return prefix(self._numbers[type(key)]) + schema.encode(record, 0, flexible=False)

    def encode_value(self, value: Value) -> bytes:
        """The record's value, its version in front."""
        record: Any = value
        return prefix(_VALUE_VERSION) + schema.encode(record, _VALUE_VERSION)

    def decode(self, key: Buffer, value: Buffer | None) -> tuple[Key, Value | None] | None:
        """Key and value (None for a tombstone) of a record, or None if its type is not one of these.

        RecordFormatError if either is malformed, or the value of a version that is newer than ours.
        """
        classes = self._classes.get(read_prefix(key))
        if classes is None:
            return None
        key_class, value_class = classes
        decoded_key: Key = schema.decode(key_class, key[PREFIX_BYTES:], 0, flexible=False)
        if value is None:
            return decoded_key, None
        version = read_prefix(value)
        if version != _VALUE_VERSION:
            raise RecordFormatError(f"{value_class.__name__} has the version {version}.")
        return decoded_key, schema.decode(value_class, value[PREFIX_BYTES:], version)
