"""The committed offsets in a directory of Apache Kafka, which must be those that its own coordinator
reads.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.cli.kafka_import.classic_groups import read_classic_groups
from barnabas.cli.kafka_import.kafka_directory import KafkaDirectory
from barnabas.protocol.classic_group_records import (
    OffsetCommitKey,
    OffsetCommitValue,
    encode_classic_key,
    encode_classic_value,
)
from barnabas.protocol.control_record import ControlType, control_key
from barnabas.protocol.records import Record, encode_records
from barnabas.storage.errors import InvalidDirectory

KEY = OffsetCommitKey(group="billing", topic="invoices", partition=0)
TRANSACTIONAL, CONTROL = 0x10, 0x20
PRODUCER = 9


class OffsetsDirectory(KafkaDirectory):
    """One partition of `__consumer_offsets`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._log = b""
        self._next_offset = 0

    def partitions_of(self, name: str) -> list[int]:
        directory = self.path / f"{name}-0"
        directory.mkdir()
        (directory / f"{0:020}.log").write_bytes(self._log)
        return [0]

    def write(self, key: bytes, value: bytes | None, attributes: int = 0) -> None:
        record = Record(self._next_offset, 0, key, value)
        producer_id = PRODUCER if attributes else -1
        self._log += encode_records([record], attributes=attributes, producer_id=producer_id)
        self._next_offset += 1

    def commit(self, offset: int, attributes: int = 0) -> None:
        value = OffsetCommitValue(offset=offset, metadata="", commit_timestamp_ms=1)
        self.write(encode_classic_key(KEY), encode_classic_value(value), attributes)

    def end_transaction(self, marker: ControlType) -> None:
        self.write(control_key(marker), bytes(6), TRANSACTIONAL | CONTROL)

    def committed(self) -> int | None:
        """The offsets that the group has committed."""
        for group in read_classic_groups(self, ["invoices"], 0):
            for _, value in group.records:
                assert isinstance(value, OffsetCommitValue)
                return value.offset
        return None


@pytest.mark.parametrize(("marker", "offset"), [(ControlType.COMMIT, 7), (ControlType.ABORT, 5)])
def test_an_offset_in_a_transaction_counts_if_the_transaction_committed(
    tmp_path: Path, marker: ControlType, offset: int
) -> None:
    directory = OffsetsDirectory(tmp_path)
    directory.commit(5)
    directory.commit(7, TRANSACTIONAL)
    directory.end_transaction(marker)
    assert directory.committed() == offset


def test_an_offset_committed_during_a_transaction_outlives_its_end(tmp_path: Path) -> None:
    directory = OffsetsDirectory(tmp_path)
    directory.commit(7, TRANSACTIONAL)
    directory.commit(8)
    directory.end_transaction(ControlType.COMMIT)
    assert directory.committed() == 8


def test_an_offset_deleted_during_a_transaction_stays_deleted(tmp_path: Path) -> None:
    directory = OffsetsDirectory(tmp_path)
    directory.commit(7, TRANSACTIONAL)
    directory.write(encode_classic_key(KEY), None)
    directory.end_transaction(ControlType.COMMIT)
    assert directory.committed() is None


def test_a_record_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    directory = OffsetsDirectory(tmp_path)
    directory.commit(5)
    directory.write(encode_classic_key(KEY), b"\x00\x63")
    with pytest.raises(InvalidDirectory, match="__consumer_offsets-0, offset 1, cannot be read"):
        directory.committed()
