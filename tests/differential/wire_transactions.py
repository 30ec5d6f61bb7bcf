"""DescribeTransactions' response, version 0. kio cannot read it while no transaction is open: there is no
start time then, and kio does not read -1 as none.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from barnabas.protocol.decode.reader import FlexibleReader
from barnabas.protocol.errors import ErrorCode

_INT16: Final = struct.Struct(">h")
_NUMBERS: Final = struct.Struct(">iqqh")
"""Timeout, start time, producer id, producer epoch."""


@dataclass(frozen=True)
class TopicData:
    """The partitions of one topic in the transaction."""

    topic: str
    partitions: list[int]


@dataclass(frozen=True)
class TransactionState:
    """One transactional id."""

    error_code: ErrorCode
    transactional_id: str
    transaction_state: str
    transaction_timeout: int
    transaction_start_timestamp: int
    producer_id: int
    producer_epoch: int
    topics: list[TopicData]


@dataclass(frozen=True)
class DescribeTransactionsResponse:
    """The whole response."""

    throttle_time: int
    transaction_states: list[TransactionState]


def read_described_transactions(body: bytes) -> DescribeTransactionsResponse:
    reader = FlexibleReader(body, 0)
    response = DescribeTransactionsResponse(reader.int32(), reader.array(_read_state))
    reader.tagged_fields()
    assert reader.position == len(body)
    return response


def _read_state(reader: FlexibleReader) -> TransactionState:
    (error_code,) = reader.fields(_INT16)
    transactional_id, state = reader.nullable_string() or "", reader.nullable_string() or ""
    timeout, start, producer_id, producer_epoch = reader.fields(_NUMBERS)
    topics = reader.array(_read_topic)
    reader.tagged_fields()
    return TransactionState(
        ErrorCode(error_code), transactional_id, state, timeout, start, producer_id, producer_epoch, topics
    )


def _read_topic(reader: FlexibleReader) -> TopicData:
    topic = TopicData(reader.nullable_string() or "", reader.array(FlexibleReader.int32))
    reader.tagged_fields()
    return topic
