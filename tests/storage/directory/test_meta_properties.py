from uuid import UUID

import pytest

from barnabas.storage.directory.meta_properties import (
    MetaProperties,
    decode_meta_properties,
    encode_meta_properties,
)
from barnabas.storage.errors import InvalidDirectory

PROPERTIES = MetaProperties("AAAAAAAAAAAAAAAAAAAAAA", 1, UUID("a74c15ad-4ae4-4a7f-a4f0-32ca0a4ea8ef"))

KAFKAS = b"""#
#Sat Nov 21 11:26:03 UTC 2026
cluster.id=AAAAAAAAAAAAAAAAAAAAAA
directory.id=p0wVrUrkSn-k8DLKCk6o7w
node.id=1
version=1
"""


def test_what_kafka_wrote_is_read() -> None:
    assert decode_meta_properties(KAFKAS) == PROPERTIES


def test_what_is_written_is_read_back() -> None:
    assert decode_meta_properties(encode_meta_properties(PROPERTIES)) == PROPERTIES


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"garbage\xff",
        KAFKAS.replace(b"version=1", b"version=0"),
        KAFKAS.replace(b"node.id=1", b"node.id=one"),
        KAFKAS.replace(b"cluster.id", b"cluster"),
        KAFKAS.replace(b"p0wVrU", b""),
    ],
)
def test_anything_else_is_refused(content: bytes) -> None:
    with pytest.raises(InvalidDirectory):
        decode_meta_properties(content)
