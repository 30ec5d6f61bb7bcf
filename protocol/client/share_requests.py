"""ShareFetch and ShareAcknowledge requests, versions 1 and 2 (KIP-932, KIP-1206, KIP-1222).

The inverse of the decoders in `decode`, with their bodies. A client that acknowledges record by record sends
hundreds of batches in a request, so no object is created for each. Version 1 lacks the acquire mode and the
renewal flag, which are left out.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final
from uuid import UUID

from barnabas.protocol.decode.acknowledgements import AckBatch, AckTopic
from barnabas.protocol.decode.acknowledging_transaction import TRANSACTION_TAG, encode_transaction
from barnabas.protocol.decode.share_acknowledge import RENEWAL_VERSION, ShareAcknowledgeBody
from barnabas.protocol.decode.share_fetch import (
    LOCK_DURATION_TAG,
    MODE_VERSION,
    REPEATS_TAG,
    WANTS_RUNS_TAG,
    WITHOUT_RECORDS_TAG,
    ShareFetchBody,
)
from barnabas.protocol.extended.release_delays import RELEASE_DELAYS_TAG, pack_release_delays
from barnabas.protocol.message_parts import INT32, NO_TAGS, compact_count, compact_string, tagged_fields

_FETCH_NUMBERS: Final = struct.Struct(">iiiiii")
_MODE_AND_RENEWAL: Final = struct.Struct(">b?")
_EPOCH: Final = struct.Struct(">i")
_RENEWAL: Final = struct.Struct(">?")
_OFFSETS: Final = struct.Struct(">qq")


def encode_share_fetch_request(version: int, body: ShareFetchBody) -> bytes:
    """The body of a ShareFetch request. `version` is 1 or 2."""
    request = bytearray(compact_string(body.group_id))
    request += compact_string(body.member_id)
    request += _FETCH_NUMBERS.pack(
        body.share_session_epoch,
        body.max_wait_ms,
        body.min_bytes,
        body.max_bytes,
        body.max_records,
        body.batch_size,
    )
    if version >= MODE_VERSION:
        request += _MODE_AND_RENEWAL.pack(body.share_acquire_mode, body.is_renew_ack)
    request += _topics(body.topics)
    request += _forgotten(body.forgotten_topics)
    request += tagged_fields(_fetch_tags(body))
    return bytes(request)


def _fetch_tags(body: ShareFetchBody) -> list[tuple[int, bytes]]:
    tags: list[tuple[int, bytes]] = []
    if body.lock_duration_ms is not None:
        tags.append((LOCK_DURATION_TAG, INT32.pack(body.lock_duration_ms)))
    if body.repeats_requests:
        tags.append((REPEATS_TAG, b""))
    if body.wants_runs:
        tags.append((WANTS_RUNS_TAG, b""))
    if body.without_records:
        tags.append((WITHOUT_RECORDS_TAG, b""))
    return tags


def encode_share_acknowledge_request(version: int, body: ShareAcknowledgeBody) -> bytes:
    """The body of a ShareAcknowledge request. `version` is 1 or 2."""
    request = bytearray(compact_string(body.group_id))
    request += compact_string(body.member_id)
    request += _EPOCH.pack(body.share_session_epoch)
    if version >= RENEWAL_VERSION:
        request += _RENEWAL.pack(body.is_renew_ack)
    request += _topics(body.topics)
    transaction = body.transaction
    request += tagged_fields(
        () if transaction is None else [(TRANSACTION_TAG, encode_transaction(transaction))]
    )
    return bytes(request)


def _topics(topics: Sequence[AckTopic]) -> bytes:
    encoded = bytearray(compact_count(len(topics)))
    for topic_id, partitions in topics:
        encoded += topic_id.bytes
        encoded += compact_count(len(partitions))
        for index, batches, delays in partitions:
            encoded += INT32.pack(index)
            encoded += compact_count(len(batches))
            for batch in batches:
                encoded += _batch(batch)
            encoded += tagged_fields([(RELEASE_DELAYS_TAG, pack_release_delays(delays))] if delays else ())
        encoded += NO_TAGS
    return bytes(encoded)


def _batch(batch: AckBatch) -> bytes:
    types = bytes(batch.types)
    return b"".join(
        (_OFFSETS.pack(batch.first_offset, batch.last_offset), compact_count(len(types)), types, NO_TAGS)
    )


def _forgotten(topics: Sequence[tuple[UUID, list[int]]]) -> bytes:
    encoded = bytearray(compact_count(len(topics)))
    for topic_id, indexes in topics:
        encoded += topic_id.bytes
        encoded += compact_count(len(indexes))
        encoded += b"".join([INT32.pack(index) for index in indexes])
        encoded += NO_TAGS
    return bytes(encoded)
