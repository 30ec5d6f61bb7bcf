"""Transactional ids and pending offsets in a directory of Apache Kafka."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.cli.kafka_import.kafka_directory import KafkaDirectory
from barnabas.cli.kafka_import.transactions import PendingOffsets, read_pending_offsets, read_transactions
from barnabas.coordinator.metadata.topic_names import OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from barnabas.protocol.identity import ProducerIdentity
from barnabas.protocol.record_batch import TRANSACTIONAL_FLAG
from barnabas.protocol.records import Record, encode_records
from barnabas.protocol.transaction_log_records import (
    TransactionLogKey,
    TransactionLogValue,
    encode_transaction_key,
    encode_transaction_value,
)
from barnabas.protocol.transaction_marker import TransactionEnd, build_marker_batch
from barnabas.storage.errors import InvalidDirectory


class PartitionsDirectory(KafkaDirectory):
    """Two partitions of any of Kafka's internal topics, with the batches of a test."""

    def __init__(self, path: Path, topic: str, *partitions: bytes) -> None:
        self.path = path
        for number, data in enumerate(partitions):
            directory = path / f"{topic}-{number}"
            directory.mkdir()
            (directory / f"{0:020}.log").write_bytes(data)
        self._count = len(partitions)

    def partitions_of(self, name: str) -> list[int]:
        return list(range(self._count))


def key(transactional_id: str) -> bytes:
    return encode_transaction_key(TransactionLogKey(transactional_id=transactional_id))


def value(producer_id: int) -> bytes:
    return encode_transaction_value(
        TransactionLogValue(
            producer_id=producer_id,
            producer_epoch=0,
            transaction_timeout_ms=1,
            transaction_status=0,
            transaction_partitions=None,
            transaction_last_update_timestamp_ms=1,
            transaction_start_timestamp_ms=-1,
        ),
        2,
    )


def records(*pairs: tuple[bytes | None, bytes | None]) -> bytes:
    return encode_records([Record(offset, 0, *pair) for offset, pair in enumerate(pairs)])


def test_the_newest_record_of_each_transactional_id_is_imported(tmp_path: Path) -> None:
    directory = PartitionsDirectory(
        tmp_path,
        TRANSACTION_STATE_TOPIC,
        records((key("b"), value(1)), (key("gone"), value(2)), (key("b"), value(3)), (key("gone"), None)),
        records((key("a"), value(4))),
    )
    assert read_transactions(directory) == [("a", (key("a"), value(4))), ("b", (key("b"), value(3)))]


def test_a_record_that_cannot_be_read_is_named_with_its_place(tmp_path: Path) -> None:
    directory = PartitionsDirectory(tmp_path, TRANSACTION_STATE_TOPIC, records((key("a"), b"\x00\x01\x00")))
    with pytest.raises(InvalidDirectory, match=f"record at 0 of {TRANSACTION_STATE_TOPIC}-0"):
        read_transactions(directory)


def test_offsets_of_open_transactions_are_pending(tmp_path: Path) -> None:
    def of(producer_id: int, offset: int, text: bytes) -> bytes:
        record = Record(offset, 0, text, text)
        return encode_records(
            [record], attributes=TRANSACTIONAL_FLAG, producer_id=producer_id, producer_epoch=2
        )

    def end(producer_id: int, offset: int, *, commit: bool) -> bytes:
        producer, ended = ProducerIdentity(producer_id, 2), TransactionEnd(commit, 0)
        return build_marker_batch(offset, producer, ended, leader_epoch=0, timestamp_ms=0)

    directory = PartitionsDirectory(
        tmp_path,
        OFFSETS_TOPIC,
        of(1, 0, b"committed") + of(2, 1, b"aborted") + end(1, 2, commit=True) + end(2, 3, commit=False),
        of(1, 0, b"first") + records((b"plain", b"plain")) + of(1, 2, b"second"),
    )
    assert read_pending_offsets(directory) == [
        PendingOffsets(1, ProducerIdentity(1, 2), [(b"first", b"first"), (b"second", b"second")])
    ]
