"""DescribeTransactions responses, version 0 (KIP-664).

They do not use kio, which rejects the start time -1 of an id without an open transaction.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from barnabas.protocol.message_parts import INT16, INT32, NO_TAGS, compact_count, compact_string

_TIMES_AND_PRODUCER: Final = struct.Struct(">iqqh")
"""timeout_ms, start_time_ms, producer_id, producer_epoch."""


class TransactionResult(NamedTuple):
    """One transactional id; with an error, the other fields have Kafka's defaults, which are those here."""

    transactional_id: str
    error_code: int = 0
    state: str = ""
    timeout_ms: int = 0
    started_at_ms: int = 0
    producer_id: int = 0
    producer_epoch: int = 0
    topics: Mapping[str, Sequence[int]] = {}
    """Partitions by topic name."""


def encode_describe_transactions_response(results: Sequence[TransactionResult]) -> bytes:
    """The body of a response."""
    states = b"".join(map(_state, results))
    return b"".join((INT32.pack(0), compact_count(len(results)), states, NO_TAGS))


def _state(result: TransactionResult) -> bytes:
    topics = b"".join(_topic(name, partitions) for name, partitions in result.topics.items())
    return b"".join(
        (
            INT16.pack(result.error_code),
            compact_string(result.transactional_id),
            compact_string(result.state),
            _TIMES_AND_PRODUCER.pack(
                result.timeout_ms, result.started_at_ms, result.producer_id, result.producer_epoch
            ),
            compact_count(len(result.topics)),
            topics,
            NO_TAGS,
        )
    )


def _topic(name: str, partitions: Sequence[int]) -> bytes:
    indexes = b"".join(map(INT32.pack, partitions))
    return b"".join((compact_string(name), compact_count(len(partitions)), indexes, NO_TAGS))
