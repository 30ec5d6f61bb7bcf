"""Requests by kio and kio's view of them, for the tests of both decoders of acknowledgements."""

from __future__ import annotations

import struct
import uuid
from importlib import import_module
from typing import Any

from hypothesis import strategies as st
from kio.serial.errors import SerialError

from barnabas.protocol.api import ApiKey
from barnabas.protocol.decode.acknowledgements import AckBatch, AckPartition, AckTopic
from barnabas.protocol.decode.share_acknowledge import ShareAcknowledgeBody
from barnabas.protocol.decode.share_fetch import ShareFetchBody
from barnabas.protocol.errors import FrameError
from barnabas.protocol.kio_messages import message_class
from barnabas.protocol.primitive import to_milliseconds
from barnabas.protocol.tolerant import Edit, apply_edits, compile_walk
from barnabas.protocol.varint import RecordFormatError
from tests.protocol.filled_messages import read

ZERO_ID = uuid.UUID(int=0)
VERSIONS = (1, 2)
"""The versions of both APIs."""
MANY = 300
"""More batches than the decoder reads together, and more than one byte can count."""

Batch = st.SearchStrategy[tuple[int, int, tuple[int, ...]]]

INT32S = st.integers(-(2**31), 2**31 - 1)
INT64S = st.integers(-(2**63), 2**63 - 1)
NAMES = st.none() | st.text(max_size=150)
ONE_TYPE: Batch = st.tuples(INT64S, INT64S, st.tuples(st.integers(-128, 127)))
"""A batch with the layout of most batches."""
ANY_TYPES: Batch = st.tuples(INT64S, INT64S, st.lists(st.integers(-128, 127), max_size=150).map(tuple))
MIXED = st.lists(ONE_TYPE | ANY_TYPES, max_size=12)
ALIKE = st.tuples(ONE_TYPE, st.integers(0, MANY)).map(lambda drawn: [drawn[0]] * drawn[1])
AMONG_OTHERS = st.tuples(MIXED, MIXED, MIXED).map(lambda drawn: drawn[0] * 9 + drawn[1] + drawn[2] * 9)
BATCHES = MIXED | ALIKE | AMONG_OTHERS
TOPICS = st.lists(
    st.tuples(st.uuids() | st.just(ZERO_ID), st.lists(st.tuples(INT32S, BATCHES), max_size=3)), max_size=3
)
DAMAGES = st.binary(max_size=6) | st.sampled_from([b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x0f"])


def kio_topics(request_class: type, topics: Any) -> tuple[Any, ...]:
    """Topics for a request, from (id, [(index, [(first, last, types)])])."""
    module: Any = import_module(request_class.__module__)
    is_fetch = hasattr(module, "FetchTopic")
    topic_class = module.FetchTopic if is_fetch else module.AcknowledgeTopic
    partition_class = module.FetchPartition if is_fetch else module.AcknowledgePartition

    def batch(first_offset: int, last_offset: int, types: tuple[int, ...]) -> Any:
        return module.AcknowledgementBatch(
            first_offset=first_offset, last_offset=last_offset, acknowledge_types=types
        )

    def partition(index: int, batches: Any) -> Any:
        return partition_class(
            partition_index=index, acknowledgement_batches=tuple(batch(*one) for one in batches)
        )

    return tuple(
        topic_class(topic_id=topic_id, partitions=tuple(partition(*one) for one in partitions))
        for topic_id, partitions in topics
    )


def as_ack_topics(topics: Any) -> list[AckTopic]:
    """kio's topics in the decoders' tuples."""
    return [
        AckTopic(
            topic.topic_id or ZERO_ID,
            [
                AckPartition(
                    partition.partition_index,
                    [
                        AckBatch(
                            batch.first_offset,
                            batch.last_offset,
                            bytes(ack_type & 0xFF for ack_type in batch.acknowledge_types),
                        )
                        for batch in partition.acknowledgement_batches
                    ],
                )
                for partition in topic.partitions
            ],
        )
        for topic in topics
    ]


def damaged(body: bytes, data: st.DataObject) -> bytes:
    """The same body with changed bytes in up to three positions."""
    changed = bytearray(body)
    for _ in range(data.draw(st.integers(1, 3))):
        position = data.draw(st.integers(0, len(changed)))
        changed[position : position + 1] = data.draw(DAMAGES)
    return bytes(changed)


class StricterThanKafka(Exception):  # noqa: N818  named as the condition
    """For Kafka every byte except 0 is true; kio accepts only 0 and 1."""


def read_by_kio(request_class: Any, body: bytes) -> Any:
    """kio's reading of a body that may be damaged or have unknown tagged fields; None if it fails. Raises
    `StricterThanKafka` if that says nothing about Kafka's reading.
    """
    edits: list[Edit] = []
    try:
        end = compile_walk(request_class)(body, 0, edits)
        return None if end > len(body) else read(request_class, apply_edits(body[:end], 0, edits))
    except (
        FrameError,
        IndexError,
        OverflowError,
        RecordFormatError,
        SerialError,
        ValueError,
        struct.error,
    ) as error:
        if "boolean" in str(error):
            raise StricterThanKafka from error
        return None


def request_class(api: ApiKey, version: int) -> Any:
    """kio's class of a request."""
    return message_class(api, version, "request")


def without_bytes(body: Any) -> Any:
    """A decoded request without the bytes of its topics, by which a repeated one is recognised."""
    return body._replace(encoded_topics=b"") if hasattr(body, "encoded_topics") else body


def share_fetch_body(request: Any) -> ShareFetchBody:
    """kio's request in the decoder's tuples."""
    return ShareFetchBody(
        request.group_id,
        request.member_id,
        request.share_session_epoch,
        to_milliseconds(request.max_wait),
        request.min_bytes,
        request.max_bytes,
        request.max_records,
        request.batch_size,
        getattr(request, "share_acquire_mode", 0),
        getattr(request, "is_renew_ack", False),
        as_ack_topics(request.topics),
        [(topic.topic_id or ZERO_ID, list(topic.partitions)) for topic in request.forgotten_topics_data],
    )


def share_acknowledge_body(request: Any) -> ShareAcknowledgeBody:
    """kio's request in the decoder's tuples."""
    return ShareAcknowledgeBody(
        request.group_id,
        request.member_id,
        request.share_session_epoch,
        getattr(request, "is_renew_ack", False),
        as_ack_topics(request.topics),
    )
