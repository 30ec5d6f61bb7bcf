"""Other protocols on a Kafka port are recognised."""

import struct

import pytest

from barnabas.protocol.foreign import ForeignProtocolError, foreign_protocol
from barnabas.protocol.frame import FrameDecoder


@pytest.mark.parametrize(
    ("sent", "named"),
    [
        (b"GET /metrics HTTP/1.1\r\nHost: broker\r\n\r\n", "An HTTP request (GET /metrics) came"),
        (b"POST /topics/orders HTTP/1.0\n\n", "An HTTP request (POST /topics/orders) came"),
        (b"HEAD", "An HTTP request (HEAD) came"),
        (b"GET /\x1b[31m HTTP/1.1\r\n", "An HTTP request (GET /?[31m) came"),
        (b"GET /" + b"a" * 5000, "(GET /" + "a" * 95 + ")"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "An HTTP request (PRI *) came"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "A TLS ClientHello came"),
    ],
)
def test_other_protocols_are_named(sent: bytes, named: str) -> None:
    decoder = FrameDecoder(100 * 1024 * 1024)
    decoder.get_buffer(-1)[: len(sent)] = sent
    (error,) = decoder.buffer_updated(len(sent))
    assert isinstance(error, ForeignProtocolError)
    assert named in str(error)


@pytest.mark.parametrize(
    "sent", [struct.pack(">i", 2**31 - 1), b"SSH-2.0-OpenSSH_9.6\r\n", b"\xff\xff\xff\xff"]
)
def test_other_bytes_are_not_recognised(sent: bytes) -> None:
    assert foreign_protocol(sent) is None
