"""The metadata of consumers in the classic protocol."""

from __future__ import annotations

import pytest

from barnabas.protocol.consumer_protocol import (
    Assignment,
    NamedPartitions,
    decode_assignment,
    decode_subscription,
    decode_topics,
    encode_assignment,
    protocol_version,
)
from barnabas.protocol.varint import RecordFormatError

TOPICS = b"\0\0\0\2\0\1t\0\1u"
NO_DATA = b"\xff\xff\xff\xff"
OWNED = b"\0\0\0\1\0\1t\0\0\0\2\0\0\0\0\0\0\0\5"


def test_each_version_of_a_subscription_has_its_fields() -> None:
    assert decode_subscription(b"\0\0" + TOPICS + NO_DATA).topics == ("t", "u")
    owned = decode_subscription(b"\0\1" + TOPICS + NO_DATA + OWNED).owned_partitions
    assert owned == (NamedPartitions(topic="t", partitions=(0, 5)),)
    newest = decode_subscription(b"\0\3" + TOPICS + NO_DATA + OWNED + b"\0\0\0\7" + b"\0\1r")
    assert (newest.generation_id, newest.rack_id) == (7, "r")


def test_the_known_fields_of_a_newer_version_are_read() -> None:
    data = b"\0\4" + TOPICS + NO_DATA + OWNED + b"\0\0\0\7" + b"\xff\xff" + b"more"
    assert decode_subscription(data).topics == ("t", "u")
    assert protocol_version(data) == 3


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\1", b"\0\0\0\0\0\1", b"\xff\xff" + TOPICS + NO_DATA])
def test_a_malformed_subscription_is_refused(data: bytes) -> None:
    with pytest.raises(RecordFormatError):
        decode_subscription(data)


def test_topics_are_read_without_the_bytes_after_them() -> None:
    assert decode_topics(b"\0\7" + TOPICS) == ("t", "u")


def test_an_assignment_survives_encoding_and_decoding() -> None:
    assignment = Assignment(assigned_partitions=(NamedPartitions(topic="t", partitions=(1, 2)),))
    assert decode_assignment(encode_assignment(assignment, 1)) == assignment
