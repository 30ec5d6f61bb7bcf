"""ShareFetch requests (key 78, versions 1 and 2; KIP-932, KIP-1206, KIP-1222), and tagged fields of Barnabas.

A client that reads the records elsewhere sends an empty tagged field, and gets only their offsets. Other tags
have the duration of the member's locks, and the client's abilities. Apache Kafka skips them, because it skips
all unknown tags; so does this decoder. The combination of the fields is not checked.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final, NamedTuple
from uuid import UUID

from barnabas.protocol.decode.acknowledgements import AckTopic, encoded_between, read_ack_topics
from barnabas.protocol.decode.reader import MALFORMED, FlexibleReader, malformed
from barnabas.protocol.errors import FrameError
from barnabas.protocol.tuples import maker
from barnabas.protocol.varint import Buffer

MODE_VERSION: Final = 2
"""From this version on, a request has an acquire mode and the flag for renewals."""

LOCK_DURATION_TAG: Final = 10_000
REPEATS_TAG: Final = 10_001
WANTS_RUNS_TAG: Final = 10_002
WITHOUT_RECORDS_TAG: Final = 0x6262
"""All are far from Kafka's tags, which count up from 0."""

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
    lock_duration_ms: int | None = None
    """The duration of this member's locks from now on; None leaves it unchanged."""
    repeats_requests: bool = False
    """Whether the client repeats requests of this session after a lost connection (decision 26)."""
    wants_runs: bool = False
    """Whether the responses of this session tell the runs of records; see `extended.runs`."""
    encoded_topics: bytes = b""
    """See `acknowledgements.encoded_between`; not for encoders."""


_new_body = maker(ShareFetchBody)
_NO_ELEMENTS: Final = 1
_NO_TAGS: Final = 0
"""The encodings of an empty array, and of no tagged fields."""
_UNSET: Final = False, None, False, False
"""The fields that only tags set."""


def decode_share_fetch(version: int, frame: Buffer, body_offset: int) -> ShareFetchBody:
    """The request whose body starts at `body_offset` of `frame`; `FrameError` if it is malformed."""
    reader = FlexibleReader(bytes(frame), body_offset)
    try:
        return _read_body(reader, version)
    except MALFORMED as error:
        raise malformed("A share fetch request", error) from None


def _read_body(reader: FlexibleReader, version: int) -> ShareFetchBody:
    group_id, member_id = reader.nullable_string(), reader.nullable_string()
    frame, start = reader.frame, reader.position
    if version >= MODE_VERSION:
        numbers = _NUMBERS.unpack_from(frame, start)
        start += _NUMBERS.size
    else:
        numbers = (*_NUMBERS_WITHOUT_MODE.unpack_from(frame, start), 0, False)
        start += _NUMBERS_WITHOUT_MODE.size
    reader.position = start
    topics, forgotten_topics = read_ack_topics(reader), list[tuple[UUID, list[int]]]()
    if frame[reader.position] == _NO_ELEMENTS:
        reader.position += 1
    else:
        forgotten_topics = reader.array(_read_forgotten_topic)
    encoded_topics = encoded_between(frame, start, reader.position)
    body = _new_body((group_id, member_id, *numbers, topics, forgotten_topics, *_UNSET, encoded_topics))
    if frame[reader.position] == _NO_TAGS:
        reader.position += 1
        return body
    return _with_tags(body, reader.tags())


def _with_tags(body: ShareFetchBody, tags: Mapping[int, Buffer]) -> ShareFetchBody:
    duration = tags.get(LOCK_DURATION_TAG)
    if duration is not None and len(duration) != _INT32.size:
        raise FrameError(f"A duration of locks has {len(duration)} bytes instead of {_INT32.size}.")
    return body._replace(
        without_records=WITHOUT_RECORDS_TAG in tags,
        lock_duration_ms=None if duration is None else _INT32.unpack(duration)[0],
        repeats_requests=REPEATS_TAG in tags,
        wants_runs=WANTS_RUNS_TAG in tags,
    )


def _read_forgotten_topic(reader: FlexibleReader) -> tuple[UUID, list[int]]:
    topic_id = reader.topic_id()
    indexes = reader.int32s(reader.count())
    reader.tagged_fields()
    return topic_id, indexes
