"""The text of the `partition.metadata` file (KIP-516)."""

from uuid import UUID

import pytest

from barnabas.storage.format.checkpoint_file import CheckpointCorrupt
from barnabas.storage.format.partition_metadata import (
    decode_id,
    decode_partition_metadata,
    encode_id,
    encode_partition_metadata,
)

TOPIC_ID = UUID("a74c15ad-4ae4-4a7f-a4f0-32ca0a4ea8ef")


def test_content_is_kafkas() -> None:
    assert encode_partition_metadata(TOPIC_ID) == b"version: 0\ntopic_id: p0wVrUrkSn-k8DLKCk6o7w"
    assert decode_partition_metadata(encode_partition_metadata(TOPIC_ID)) == TOPIC_ID
    assert decode_id(encode_id(TOPIC_ID)) == TOPIC_ID


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"version: 0",
        b"version: x\ntopic_id: p0wVrUrkSn-k8DLKCk6o7w",
        b"version: -1\ntopic_id: p0wVrUrkSn-k8DLKCk6o7w",
        b"version: 0\ntopic_id: p0wV",
        b"version: 0\nname: x",
        b"\xff",
    ],
)
def test_anything_else_is_corrupt(content: bytes) -> None:
    with pytest.raises(CheckpointCorrupt):
        decode_partition_metadata(content)
