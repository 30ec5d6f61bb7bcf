"""Loops over large messages give way to other threads; compiled ones would not do so by themselves."""

from __future__ import annotations

import struct
from types import ModuleType
from uuid import UUID

import pytest

from barnabas.protocol.decode import acknowledgements, fetch, reader
from barnabas.protocol.decode.acknowledgements import read_ack_topics
from barnabas.protocol.decode.fetch import decode_fetch
from barnabas.protocol.decode.reader import FlexibleReader
from barnabas.protocol.encode import fetch as encoded_fetch
from barnabas.protocol.encode import share_fetch
from barnabas.protocol.encode.fetch import FetchPartitionResult, FetchTopicResult, encode_fetch_response
from barnabas.protocol.encode.share_fetch import (
    ShareFetchPartitionResult,
    ShareFetchTopicResult,
    encode_share_fetch_response,
)
from barnabas.protocol.varint import unsigned_varint

pytestmark = pytest.mark.interpreted

MANY = 1000
SWITCHES_MIN = MANY // 64
TOPIC_ID = UUID(int=7)


@pytest.fixture
def switches(monkeypatch: pytest.MonkeyPatch) -> list[ModuleType]:
    """The modules that gave way, once for each time."""
    found: list[ModuleType] = []

    def watch(module: ModuleType) -> None:
        monkeypatch.setattr(module, "switch_threads", lambda: found.append(module))

    for module in (acknowledgements, fetch, reader, encoded_fetch, share_fetch):
        watch(module)
    return found


def compact(count: int) -> bytes:
    """The encoded number of an array's elements."""
    return unsigned_varint(count + 1)


def ack_topic(partitions: bytes, count: int) -> bytes:
    return TOPIC_ID.bytes + compact(count) + partitions + b"\0"


def test_many_partitions_and_many_topics_of_a_share_request_are_read(switches: list[ModuleType]) -> None:
    partition = struct.pack(">iBB", 3, 1, 0)
    for body in (
        compact(1) + ack_topic(partition * MANY, MANY),
        compact(MANY) + ack_topic(partition, 1) * MANY,
    ):
        switches.clear()
        read_ack_topics(FlexibleReader(body, 0))
        assert len(switches) >= SWITCHES_MIN


def test_many_acknowledgements_are_read(switches: list[ModuleType]) -> None:
    batch = struct.pack(">qqB1sB", 5, 6, 2, b"\1", 0)
    partition = struct.pack(">i", 3) + compact(MANY) + batch * MANY + b"\0"
    (topic,) = read_ack_topics(FlexibleReader(compact(1) + ack_topic(partition, 1), 0))
    assert len(topic.partitions[0].acknowledgement_batches) == MANY
    assert len(switches) >= MANY // 128


def test_many_partitions_of_a_fetch_are_read(switches: list[ModuleType]) -> None:
    partition = struct.pack(">iiqiqiB", 0, -1, 0, -1, -1, 1, 0)
    topic = TOPIC_ID.bytes + compact(MANY) + partition * MANY + b"\0"
    head = struct.pack(">iiibii", 0, 0, 1, 0, 0, -1)
    decode_fetch(17, head + compact(1) + topic + compact(0) + compact(0) + b"\0", 0)
    assert len(switches) >= SWITCHES_MIN


def test_many_numbers_are_read(switches: list[ModuleType]) -> None:
    numbers = list(range(10_000))
    assert FlexibleReader(struct.pack(f">{len(numbers)}i", *numbers), 0).int32s(len(numbers)) == numbers
    assert len(switches) == 3


@pytest.mark.parametrize(("topics", "partitions"), [(1, MANY), (MANY, 1)])
def test_many_results_are_written(switches: list[ModuleType], topics: int, partitions: int) -> None:
    shared = ShareFetchPartitionResult(0, 0, None, 0, None, [], [])
    encode_share_fetch_response(
        2, 0, None, 0, [ShareFetchTopicResult(TOPIC_ID, [shared] * partitions)] * topics
    )
    plain = FetchPartitionResult(0, 0, 0, 0, 0, None, [])
    encode_fetch_response(17, 0, 0, [FetchTopicResult("t", TOPIC_ID, [plain] * partitions)] * topics)
    assert switches.count(share_fetch) >= SWITCHES_MIN
    assert switches.count(encoded_fetch) >= SWITCHES_MIN
