"""Coordinator records by type: the classes of keys and values, and the bytes around their fields.

A key is an int16 record type and the fields, without compact lengths. A value is an int16 version, always 0,
and the fields in flexible encoding. A missing value (a tombstone) deletes the object that the key names.
`share_group_records` and `consumer_group_records` define the types.
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
    """The classes of keys and values, by type number."""

    def __init__(self, classes: Mapping[int, tuple[type[Key], type[Value]]]) -> None:
        self._classes: Mapping[int, tuple[type[Any], type[Any]]] = classes
        self._numbers = {key_class: number for number, (key_class, _) in classes.items()}

    def encode_key(self, key: Key) -> bytes:
        """The record's key, with its type in front."""
        record: Any = key
        return prefix(self._numbers[type(key)]) + schema.encode(record, 0, flexible=False)

    def encode_value(self, value: Value) -> bytes:
        """The record's value, with its version in front."""
        record: Any = value
        return prefix(_VALUE_VERSION) + schema.encode(record, _VALUE_VERSION)

    def decode(self, key: Buffer, value: Buffer | None) -> tuple[Key, Value | None] | None:
        """Key and value (None for a tombstone) of a record, or None if its type is not one of these.

        RecordFormatError if either is malformed, or if the value has a version newer than Barnabas knows.
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
