"""ShareFetch requests (key 78, versions 1 and 2; KIP-932, KIP-1206, KIP-1222), and one field of Barnabas.

A client that reads the records elsewhere sends an empty tagged field, and gets only their offsets. Apache
Kafka skips this tag, because it skips all unknown tags; so does this decoder. The combination of the fields
is not checked.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple
from uuid import UUID

from barnabas.protocol.decode.acknowledgements import AckTopic, read_ack_topics
from barnabas.protocol.decode.reader import FlexibleReader, read_whole
from barnabas.protocol.varint import Buffer

MODE_VERSION: Final = 2
"""From this version on, a request has an acquire mode and the flag for renewals."""

WITHOUT_RECORDS_TAG: Final = 0x6262
"""Far from Kafka's tags, which count up from 0."""

_NUMBERS: Final = struct.Struct(">iiiiiib?")
"""The fields from the session's epoch to the renewal flag."""
_NUMBERS_WITHOUT_MODE: Final = struct.Struct(">iiiiii")
_INT32: Final = struct.Struct(">i")


class ShareFetchBody(NamedTuple):
    """A share fetch request of any version; in version 1 the acquire mode is 0, and nothing is renewed.

    `forgotten_topics` are topic ids with partition indexes. Ids of all zeros are passed on unchanged.
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
    """Whether the response leaves out the bytes of the records, which are acquired as usual."""


def decode_share_fetch(version: int, frame: Buffer, body_offset: int) -> ShareFetchBody:
    """The request whose body starts at `body_offset` of `frame`; `FrameError` if it is malformed."""
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
