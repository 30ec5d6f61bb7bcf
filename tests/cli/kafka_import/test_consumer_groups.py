"""The consumer groups in a directory of Apache Kafka, and the records that are imported."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.cli.kafka_import.consumer_groups import read_consumer_groups
from barnabas.protocol.consumer_group_records import (
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    encode_consumer_group_key,
    encode_consumer_group_value,
)
from barnabas.storage.errors import InvalidDirectory
from tests.cli.kafka_import.test_classic_groups import OffsetsDirectory

GROUP = encode_consumer_group_key(ConsumerGroupMetadataKey(group_id="billing"))
TARGET = encode_consumer_group_key(ConsumerGroupTargetAssignmentMetadataKey(group_id="billing"))
MEMBER = encode_consumer_group_key(ConsumerGroupMemberMetadataKey(group_id="billing", member_id="m"))


def _epoch(epoch: int) -> bytes:
    return encode_consumer_group_value(ConsumerGroupMetadataValue(epoch=epoch))


def test_the_newest_epochs_are_imported_and_no_members(tmp_path: Path) -> None:
    directory = OffsetsDirectory(tmp_path)
    target = encode_consumer_group_value(ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=3))
    directory.write(MEMBER, None)
    directory.write(GROUP, _epoch(2))
    directory.write(GROUP, _epoch(4))
    directory.write(TARGET, target)
    (group,) = read_consumer_groups(directory)
    assert group.group_id == "billing"
    assert dict(group.records) == {GROUP: _epoch(4), TARGET: target}


def test_a_deleted_group_is_omitted(tmp_path: Path) -> None:
    directory = OffsetsDirectory(tmp_path)
    directory.write(GROUP, _epoch(2))
    directory.write(TARGET, None)
    directory.write(GROUP, None)
    assert read_consumer_groups(directory) == []


def test_a_damaged_record_is_named(tmp_path: Path) -> None:
    directory = OffsetsDirectory(tmp_path)
    directory.write(GROUP, b"\0")
    with pytest.raises(InvalidDirectory, match="offset 0"):
        read_consumer_groups(directory)
