"""Reads and writes kio's messages in the shape of another version, for both ends of a connection.

A reader is built once for a message class and its target shape, and so is a writer; kio's modules are loaded
only then. `tolerant` first finds the bytes that kio must not see. `codec` and `client.api` know the versions
and the shape of each API.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from importlib import import_module
from io import BytesIO
from typing import Final, Literal, TypeVar, cast

from kio.serial import entity_reader
from kio.serial.errors import SerialError
from kio.static.protocol import Entity

from barnabas.protocol.api import ApiKey
from barnabas.protocol.entity_writer import compile_writer
from barnabas.protocol.errors import FrameError
from barnabas.protocol.lift import converter
from barnabas.protocol.tolerant import Edit, apply_edits, compile_walk
from barnabas.protocol.varint import Buffer, RecordFormatError

__all__ = ["Entity", "message_class", "message_reader", "message_writer"]

EntityT = TypeVar("EntityT", bound=Entity)

_UNREADABLE: Final = (
    IndexError,
    KeyError,
    OverflowError,
    RecordFormatError,
    SerialError,
    ValueError,
    struct.error,
)
"""The exceptions of kio and of the walk before it on a malformed message."""

_OUTSIDE_OF_KIO: Final[Mapping[tuple[int, int], str]] = {
    (ApiKey.API_VERSIONS, 5): "barnabas.protocol.newer.api_versions_v5",
    (ApiKey.OFFSET_COMMIT, 10): "barnabas.protocol.extended.offset_commit_v10",
    (ApiKey.OFFSET_FETCH, 10): "barnabas.protocol.extended.offset_fetch_v10",
    (ApiKey.TXN_OFFSET_COMMIT, 4): "barnabas.protocol.extended.txn_offset_commit_v4",
    (ApiKey.TXN_OFFSET_COMMIT, 5): "barnabas.protocol.extended.txn_offset_commit_v5",
    (ApiKey.TXN_OFFSET_COMMIT, 6): "barnabas.protocol.newer.txn_offset_commit_v6",
    (ApiKey.CONSUMER_GROUP_HEARTBEAT, 1): "barnabas.protocol.extended.consumer_group_heartbeat_v1",
    (ApiKey.CONSUMER_GROUP_DESCRIBE, 1): "barnabas.protocol.extended.consumer_group_describe_v1",
    (ApiKey.DELETE_GROUPS, 3): "barnabas.protocol.newer.delete_groups_v3",
    (ApiKey.DESCRIBE_SHARE_RECORDS, 0): "barnabas.protocol.extended.describe_share_records_v0",
    (ApiKey.ALTER_SHARE_RECORDS, 0): "barnabas.protocol.extended.alter_share_records_v0",
    (ApiKey.DESCRIBE_SHARE_RECORD_HISTORY, 0): "barnabas.protocol.extended.describe_share_record_history_v0",
}
"""By API and version, the module with messages that kio lacks, or that have extensions."""


def message_class(api_key: int, version: int, direction: Literal["request", "response"]) -> type[Entity]:
    """The class for one API, version and direction, from kio, `newer` or `extended`; loads its module."""
    name = ApiKey(api_key).name.lower()
    outside = _OUTSIDE_OF_KIO.get((api_key, version))
    module = import_module(outside or f"kio.schema.{name}.v{version}.{direction}")
    class_name = name.title().replace("_", "") + direction.title()
    return cast("type[Entity]", getattr(module, class_name))


def message_reader(source: type[Entity], shape: type[Entity]) -> Callable[[Buffer, int], Entity]:
    """Reads a body of `source` at an offset, and lifts it to `shape`.

    Raises `FrameError` on a malformed body. Surplus bytes after a whole body are ignored.
    """
    lift, walk, read = converter(source, shape), compile_walk(source), entity_reader(source)

    def decode(frame: Buffer, body_offset: int) -> Entity:
        edits: list[Edit] = []
        try:
            end = walk(frame, body_offset, edits)
            if end > len(frame):
                raise FrameError(
                    f"{source.__name__} of {len(frame)} bytes is too short: a field ends at byte {end}."
                )
            if edits:
                frame, body_offset = apply_edits(frame, body_offset, edits), 0
            entity, _ = read(frame, body_offset)
        except _UNREADABLE as error:
            version = source.__version__
            raise FrameError(f"{source.__name__} v{version} cannot be read: {error}") from error
        return entity if lift is None else cast("Entity", lift(entity))

    return decode


def message_writer(shape: type[EntityT], target: type[Entity]) -> Callable[[EntityT], bytes]:
    """Lowers a message from `shape` to `target`, and encodes it."""
    source: type[Entity] = shape
    lower, write = converter(source, target), compile_writer(target)

    def encode(entity: EntityT) -> bytes:
        buffer = BytesIO()
        write(entity if lower is None else lower(entity), buffer.write)
        return buffer.getvalue()

    return encode
