"""ShareAcknowledge requests (key 79, versions 1 and 2; KIP-932, KIP-1222).

The tag of an extension names the transaction that the acknowledgements join. Unknown tagged fields are
skipped. The combination of the fields is not checked.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from barnabas.protocol.decode.acknowledgements import AckTopic, encoded_between, read_ack_topics
from barnabas.protocol.decode.acknowledging_transaction import (
    TRANSACTION_TAG,
    AcknowledgingTransaction,
    decode_transaction,
)
from barnabas.protocol.decode.reader import MALFORMED, FlexibleReader, malformed
from barnabas.protocol.varint import Buffer

RENEWAL_VERSION: Final = 2

_EPOCH_AND_RENEWAL: Final = struct.Struct(">i?")


class ShareAcknowledgeBody(NamedTuple):
    """A share acknowledge request of any version; version 1 cannot renew locks."""

    group_id: str | None
    member_id: str | None
    share_session_epoch: int
    is_renew_ack: bool
    topics: list[AckTopic]
    encoded_topics: bytes = b""
    """See `acknowledgements.encoded_between`, with the tag of the transaction behind; not for encoders."""
    transaction: AcknowledgingTransaction | None = None
    """The transaction that the acknowledgements join (an extension); None for ordinary ones."""


def decode_share_acknowledge(version: int, frame: Buffer, body_offset: int) -> ShareAcknowledgeBody:
    """The request whose body starts at `body_offset` of `frame`; `FrameError` if it is malformed."""
    reader = FlexibleReader(bytes(frame), body_offset)
    try:
        return _read_body(reader, version)
    except MALFORMED as error:
        raise malformed("A share acknowledge request", error) from None


def _read_body(reader: FlexibleReader, version: int) -> ShareAcknowledgeBody:
    group_id, member_id = reader.nullable_string(), reader.nullable_string()
    if version >= RENEWAL_VERSION:
        session_epoch, is_renew_ack = reader.fields(_EPOCH_AND_RENEWAL)
    else:
        session_epoch, is_renew_ack = reader.int32(), False
    start = reader.position
    topics = read_ack_topics(reader)
    encoded_topics = encoded_between(reader.frame, start, reader.position)
    tags = reader.tags()
    body = ShareAcknowledgeBody(
        group_id, member_id, session_epoch, bool(is_renew_ack), topics, encoded_topics
    )
    return _with_transaction(body, tags[TRANSACTION_TAG]) if TRANSACTION_TAG in tags else body


def _with_transaction(body: ShareAcknowledgeBody, tag: Buffer) -> ShareAcknowledgeBody:
    encoded_topics = body.encoded_topics and body.encoded_topics + bytes(tag)
    return body._replace(encoded_topics=encoded_topics, transaction=decode_transaction(tag))
