"""The client's side of DescribeTransactions, version 0 (KIP-664).

It does not use kio, which rejects the start time -1 of an ended transaction. Only the producer and the state
of a transaction are read; times and topics are skipped.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from barnabas.protocol.decode.reader import FlexibleReader, read_whole
from barnabas.protocol.message_parts import NO_TAGS, compact_count, compact_string
from barnabas.protocol.varint import Buffer

_THROTTLE: Final = struct.Struct(">i")
_ERROR: Final = struct.Struct(">h")
_TIMES_AND_PRODUCER: Final = struct.Struct(">iqqh")
"""timeout_ms, start_time_ms, producer_id, producer_epoch."""
_INT32_BYTES: Final = 4


class TransactionState(NamedTuple):
    """The last transaction of a transactional id; undefined if there is an error code."""

    error_code: int
    transactional_id: str
    state: str
    """Kafka's name, such as `Ongoing` or `CompleteCommit`."""
    producer_id: int
    producer_epoch: int


def encode_describe_transactions_request(_version: int, transactional_ids: Sequence[str]) -> bytes:
    """The body of a request about these transactional ids."""
    names = b"".join(map(compact_string, transactional_ids))
    return b"".join((compact_count(len(transactional_ids)), names, NO_TAGS))


def decode_describe_transactions_response(
    version: int, frame: Buffer, body_offset: int
) -> list[TransactionState]:
    """The response whose body starts at `body_offset` of `frame`; `FrameError` if it is malformed."""
    reader = FlexibleReader(memoryview(frame), body_offset)
    return read_whole("A description of transactions", _read_body, reader, version)


def _read_body(reader: FlexibleReader, _version: int) -> list[TransactionState]:
    reader.fields(_THROTTLE)
    states = reader.array(_read_state)
    reader.tagged_fields()
    return states


def _read_state(reader: FlexibleReader) -> TransactionState:
    (error_code,) = reader.fields(_ERROR)
    transactional_id, state = reader.nullable_string(), reader.nullable_string()
    _timeout_ms, _start_time_ms, producer_id, producer_epoch = reader.fields(_TIMES_AND_PRODUCER)
    reader.array(_step_over_topic)
    reader.tagged_fields()
    return TransactionState(error_code, transactional_id or "", state or "", producer_id, producer_epoch)


def _step_over_topic(reader: FlexibleReader) -> None:
    reader.nullable_string()
    reader.take(reader.count() * _INT32_BYTES)
    reader.tagged_fields()
