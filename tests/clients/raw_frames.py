"""Frames of the Kafka protocol made by hand, well-formed and broken, and a socket to send them through."""

import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from crc32c import crc32c

from tests.clients.polling import SECONDS_MAX

API_VERSIONS = 18
METADATA = 3
PRODUCE = 0

_BATCH_PREFIX = struct.Struct(">qiibI")


def frame(payload: bytes) -> bytes:
    """A payload behind its four-byte length."""
    return struct.pack(">i", len(payload)) + payload


def request(api_key: int, api_version: int, body: bytes, *, correlation_id: int = 7) -> bytes:
    """A framed request with a version 1 header (for versions of an API that are not flexible)."""
    return frame(struct.pack(">hhih", api_key, api_version, correlation_id, 3) + b"raw" + body)


def api_versions_request(correlation_id: int = 7) -> bytes:
    """ApiVersions version 0."""
    return request(API_VERSIONS, 0, b"", correlation_id=correlation_id)


def produce_request(
    topic: str, records: bytes, *, partitions: Sequence[int] = (0,), version: int = 3
) -> bytes:
    """Produce of some bytes to each partition, acks=all; versions 3 to 8 have the same body."""
    name = topic.encode()
    data = (struct.pack(">ii", partition, len(records)) + records for partition in partitions)
    return request(
        PRODUCE,
        version,
        struct.pack(">hhii", -1, -1, 5000, 1)
        + struct.pack(">h", len(name))
        + name
        + struct.pack(">i", len(partitions))
        + b"".join(data),
    )


@dataclass(frozen=True)
class Batch:
    """A record batch of one record with value `x`, and all ways in which the tests break it."""

    magic: int = 2
    attributes: int = 0
    last_offset_delta: int = 0
    record_count: int = 1
    records: bytes = field(default=b"\x0e\x00\x00\x00\x01\x02x\x00")

    def encode(self, *, crc_change: int = 0, length_change: int = 0) -> bytes:
        """The batch as bytes; the changes are made after the right checksum and length were computed."""
        checked = struct.pack(
            ">hiqqqhii", self.attributes, self.last_offset_delta, 0, 0, -1, -1, -1, self.record_count
        )
        checked += self.records
        length = len(checked) + 9 + length_change
        checksum = (crc32c(checked) + crc_change) & 0xFFFFFFFF
        return _BATCH_PREFIX.pack(0, length, -1, self.magic, checksum) + checked


INVALID_RECORD: Final = 87
MALFORMED_RECORDS: Final = {
    "only bits": Batch(records=b"\xff" * 20),
    "a million records in 61 bytes": Batch(record_count=1_000_000, last_offset_delta=999_999, records=b""),
    "a record less": Batch(record_count=2, last_offset_delta=1),
    "bytes behind the last record": Batch(records=Batch().records + b"\0"),
    "garbage of gzip": Batch(attributes=1, records=b"\xff" * 20),
    "a negative header count": Batch(records=b"\x0e\x00\x00\x00\x01\x02x\x01"),
}
"""Batches whose records no consumer could read; they are refused with INVALID_RECORD."""


def produce_error(response: bytes) -> int:
    """Error code of the only partition in a Produce response (versions 3 to 8 have it at the same place)."""
    (code,) = produce_errors(response)
    return code


def produce_errors(response: bytes) -> list[int]:
    """Error codes of the partitions of the only topic in a Produce version 3 response."""
    (name_length,) = struct.unpack_from(">h", response, 8)
    start = 10 + name_length
    (count,) = struct.unpack_from(">i", response, start)
    partitions = struct.iter_unpack(">ihqq", response[start + 4 : start + 4 + count * 22])
    return [code for _, code, _, _ in partitions]


@dataclass
class RawConnection:
    """A blocking TCP connection to a broker."""

    address: str
    timeout_seconds: float = SECONDS_MAX

    def __post_init__(self) -> None:
        host, port = self.address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), self.timeout_seconds)

    def __enter__(self) -> "RawConnection":
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        self.socket.sendall(data)

    def receive(self) -> bytes:
        """The next response frame without its length; EOFError when the broker has closed the connection."""
        (length,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(length)

    def exchange(self, data: bytes) -> bytes:
        """Send bytes and receive one response."""
        self.send(data)
        return self.receive()

    def closed_by_broker(self) -> bool:
        """Whether the broker closes the connection without sending anything."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True

    def _exactly(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            piece = self.socket.recv(count - len(data))
            if not piece:
                raise EOFError("the broker closed the connection")
            data += piece
        return bytes(data)
