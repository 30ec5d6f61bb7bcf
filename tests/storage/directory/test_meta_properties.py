"""The `meta.properties` file (KIP-78, KIP-866): its content and its errors."""

from itertools import product
from uuid import UUID, uuid4

import pytest

from barnabas.storage.directory.meta_properties import (
    MetaProperties,
    decode_meta_properties,
    encode_meta_properties,
    settle_meta_properties,
)
from barnabas.storage.errors import InvalidDirectory
from tests.storage.memory_filesystem import MemoryFileSystem

PROPERTIES = MetaProperties("AAAAAAAAAAAAAAAAAAAAAA", 1, UUID("a74c15ad-4ae4-4a7f-a4f0-32ca0a4ea8ef"))

KAFKAS = b"""#
#Sat Nov 21 11:26:03 UTC 2026
cluster.id=AAAAAAAAAAAAAAAAAAAAAA
directory.id=p0wVrUrkSn-k8DLKCk6o7w
node.id=1
version=1
"""


def test_a_file_of_kafka_is_read() -> None:
    assert decode_meta_properties(KAFKAS) == PROPERTIES


def test_written_content_is_read_back() -> None:
    assert decode_meta_properties(encode_meta_properties(PROPERTIES)) == PROPERTIES


def test_a_changed_byte_is_found() -> None:
    written = encode_meta_properties(PROPERTIES)
    for position, other in product(range(len(written)), range(256)):
        content = bytearray(written)
        content[position] = other
        try:
            found = decode_meta_properties(bytes(content))
        except InvalidDirectory:
            continue
        # A byte of the comment, which then has no checksum, or of its end.
        assert found == PROPERTIES, (position, other)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (
            encode_meta_properties(PROPERTIES).replace(b"node.id=1", b"node.id=2"),
            "is damaged: its checksum does not match. Restore the file from a backup, or, if you have",
        ),
        (b"", "is damaged: it has no version, no cluster.id, no node.id, no directory.id."),
        (b"garbage\xff\0", "is damaged: it has no version, no cluster.id, no node.id, no directory.id."),
        (
            KAFKAS.replace(b"version=1", b"version=0"),
            "has the version 0, and this broker understands version 1.",
        ),
        (KAFKAS.replace(b"node.id=1", b"node.id=one"), "is damaged: its node.id 'one' is not a number."),
        (KAFKAS.replace(b"cluster.id", b"cluster"), "is damaged: it has no cluster.id."),
        (
            KAFKAS.replace(b"p0wVrU", b""),
            "is damaged: its directory.id 'rkSn-k8DLKCk6o7w' is not an id.",
        ),
        (
            KAFKAS.replace(b"node.id=1", b"node.id=" + b"x" * 99),
            f"is damaged: its node.id '{'x' * 40}' is not a number.",
        ),
    ],
)
def test_anything_else_is_refused_with_the_reason(content: bytes, reason: str) -> None:
    with pytest.raises(InvalidDirectory) as raised:
        decode_meta_properties(content, "data/meta.properties")
    assert str(raised.value).startswith(f"data/meta.properties {reason}")


async def test_a_file_of_kafka_gets_a_checksum() -> None:
    filesystem = MemoryFileSystem()
    filesystem.make_directory("/data")
    filesystem.files["/data/meta.properties"] = bytearray(KAFKAS[:-1])
    for _ in range(2):
        found = await settle_meta_properties(filesystem, "/data", PROPERTIES.node_id, None, uuid4)
        assert found == PROPERTIES
    content = bytes(filesystem.files["/data/meta.properties"])
    assert content.startswith(KAFKAS)
    assert decode_meta_properties(content) == PROPERTIES
    with pytest.raises(InvalidDirectory, match="its checksum does not match"):
        decode_meta_properties(content.replace(b"cluster.id=A", b"cluster.id=B"))
