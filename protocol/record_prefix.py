"""The two bytes before each key and value in a coordinator's topic: the record's type, or its version."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.varint import Buffer, RecordFormatError

PREFIX_BYTES: Final = 2


def prefix(number: int) -> bytes:
    """A type or version as int16."""
    return number.to_bytes(PREFIX_BYTES, "big")


def read_prefix(data: Buffer, subject: str = "A coordinator record") -> int:
    """The type or version at the start; RecordFormatError, about `subject`, if the data is too short."""
    if len(data) < PREFIX_BYTES:
        raise RecordFormatError(f"{subject} is cut short.")
    return int.from_bytes(data[:PREFIX_BYTES], "big", signed=True)
