"""ShareFetch requests (key 78, versions 1 and 2; KIP-932, KIP-1206, KIP-1222), and one field of our own.

A client that reads the records elsewhere asks for their offsets alone with an empty tagged field. Apache
Kafka skips tags that it doesn't know, and so do we with all others. What the fields mean together is not
looked at.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple
from uuid import UUID

from barnabas.protocol.decode.acknowledgements import AckTopic, read_ack_topics
from barnabas.protocol.decode.reader import FlexibleReader, read_whole
from barnabas.protocol.varint import Buffer

MODE_VERSION: Final = 2
"""From here on a request has an acquire mode and says whether it renews locks."""

WITHOUT_RECORDS_TAG: Final = 0x6262
"""Far from the tags that Kafka gives, which count up from 0."""

_NUMBERS: Final = struct.Struct(">iiiiiib?")
"""From the session's epoch to the renewal."""
_NUMBERS_WITHOUT_MODE: Final = struct.Struct(">iiiiii")
_INT32: Final = struct.Struct(">i")


class ShareFetchBody(NamedTuple):
    """A share fetch request of any version; version 1 has acquire mode 0 and renews nothing.

    `forgotten_topics` are topic ids with partition indexes. Ids that are all zeros are passed on as they
    came.
    """

    group_id: str | None
    member_id: str | None
    share_session_epoch: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    max_records: int
    batch_size: int
    share_acquire_mode: int
    is_renew_ack: bool
    topics: list[AckTopic]
    forgotten_topics: list[tuple[UUID, list[int]]]
    without_records: bool = False
    """Whether records are to be acquired as ever, and their bytes left out of the response."""


def decode_share_fetch(version: int, frame: Buffer, body_offset: int) -> ShareFetchBody:
    """The request whose body starts at `body_offset` of `frame`; `FrameError` if it is none."""
    return read_whole("A share fetch request", _read_body, FlexibleReader(bytes(frame), body_offset), version)


def _read_body(reader: FlexibleReader, version: int) -> ShareFetchBody:
    group_id, member_id = reader.nullable_string(), reader.nullable_string()
    if version >= MODE_VERSION:
        numbers = reader.fields(_NUMBERS)
    else:
        numbers = (*reader.fields(_NUMBERS_WITHOUT_MODE), 0, False)
    topics, forgotten_topics = read_ack_topics(reader), reader.array(_read_forgotten_topic)
    without_records = reader.has_tag(WITHOUT_RECORDS_TAG)
    return ShareFetchBody._make((group_id, member_id, *numbers, topics, forgotten_topics, without_records))


def _read_forgotten_topic(reader: FlexibleReader) -> tuple[UUID, list[int]]:
    topic_id = reader.topic_id()
    indexes = _INT32.iter_unpack(reader.take(reader.count() * _INT32.size))
    reader.tagged_fields()
    return topic_id, [index for (index,) in indexes]
