"""The tag of ShareAcknowledge requests whose acknowledgements join a producer's transaction.

The tag holds a structure: transactional_id compact string, producer_id i64, producer_epoch i16, tagged
fields. Pure.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from barnabas.protocol.decode.reader import FlexibleReader, read_whole
from barnabas.protocol.identity import ProducerIdentity
from barnabas.protocol.message_parts import NO_TAGS, compact_string
from barnabas.protocol.varint import Buffer

TRANSACTION_TAG: Final = 10_000

_PRODUCER: Final = struct.Struct(">qh")


class AcknowledgingTransaction(NamedTuple):
    """The transaction that acknowledgements join."""

    transactional_id: str
    producer: ProducerIdentity


def encode_transaction(transaction: AcknowledgingTransaction) -> bytes:
    """The content of the tag."""
    return b"".join(
        (compact_string(transaction.transactional_id), _PRODUCER.pack(*transaction.producer), NO_TAGS)
    )


def decode_transaction(data: Buffer) -> AcknowledgingTransaction:
    """The transaction in the content of the tag; `FrameError` if it is malformed."""
    return read_whole("The transaction of acknowledgements", _read, FlexibleReader(bytes(data), 0), 0)


def _read(reader: FlexibleReader, _version: int) -> AcknowledgingTransaction:
    transactional_id = reader.nullable_string() or ""
    producer_id, producer_epoch = reader.fields(_PRODUCER)
    reader.tagged_fields()
    return AcknowledgingTransaction(transactional_id, ProducerIdentity(producer_id, producer_epoch))
