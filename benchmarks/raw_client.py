"""A minimal share consumer and producer, for work that no real client does quickly.

It writes logs for other workloads: records produced one at a time, each acknowledged individually. Requests
are pipelined on one connection. It is not measured itself, recovers from no error, and uses one partition.
"""

import io
import struct
import uuid
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from crc32c import crc32c
from kio.schema.errors import ErrorCode
from kio.schema.request_header.v2.header import RequestHeader
from kio.schema.share_acknowledge.v1 import request as acknowledge
from kio.schema.share_acknowledge.v1.response import ShareAcknowledgeResponse
from kio.schema.share_fetch.v1 import request as fetch
from kio.schema.share_fetch.v1.response import ShareFetchResponse
from kio.schema.share_group_heartbeat.v1.request import ShareGroupHeartbeatRequest
from kio.schema.share_group_heartbeat.v1.response import ShareGroupHeartbeatResponse
from kio.schema.types import GroupId, TopicName
from kio.serial import entity_reader, entity_writer
from kio.static.primitive import i8, i32, i32Timedelta, i64
from tests.clients.polling import eventually
from tests.clients.raw_frames import RawConnection, frame, produce_request
from tests.clients.raw_frames import request as raw_request

ACCEPT = i8(1)
FIND_COORDINATOR = 10
_RESPONSE_HEADER_BYTES = 5
_MAX_BYTES = 50_000_000
_COORDINATOR_IS_NOT_READY = (
    ErrorCode.coordinator_load_in_progress,
    ErrorCode.coordinator_not_available,
    ErrorCode.not_coordinator,
)


class RawShareConsumer:
    """One member of a share group on partition 0 of one topic, on its own connection."""

    def __init__(self, address: str, group: str, topic: str, topic_id: uuid.UUID) -> None:
        self._connection = RawConnection(address, 60.0)
        self._group = group
        self._topic = topic
        self._topic_id = topic_id
        self._member_id = str(uuid.uuid4())
        self._session_epoch = 0

    def join(self) -> None:
        """Join the group and wait for the partition."""
        self._find_coordinator()
        member_epoch = 0

        def assigned() -> bool:
            nonlocal member_epoch
            request = ShareGroupHeartbeatRequest(
                group_id=GroupId(self._group),
                member_id=self._member_id,
                member_epoch=i32(member_epoch),
                subscribed_topic_names=(TopicName(self._topic),),
            )
            self._send(request)
            response = self._receive(ShareGroupHeartbeatResponse)
            if response.error_code in _COORDINATOR_IS_NOT_READY:
                return False
            _check(response.error_code)
            member_epoch = response.member_epoch
            return response.assignment is not None and bool(response.assignment.topic_partitions)

        eventually(assigned, awaited="the raw share consumer is assigned the partition")

    def _find_coordinator(self) -> None:
        """Ask once, as every client does; Apache Kafka creates its internal topics for this request."""
        name = self._group.encode()
        body = struct.pack(">h", len(name)) + name
        self._connection.exchange(raw_request(FIND_COORDINATOR, 0, body))

    def acquire(self, records_max: int, *, wait_ms: int = 500) -> list[int]:
        """Fetch, and return the acquired offsets."""
        self.send_fetch(records_max, accepted=(), wait_ms=wait_ms)
        return self.receive_fetch()

    def send_fetch(self, records_max: int, *, accepted: Iterable[int], wait_ms: int = 500) -> None:
        """Ask for records, and accept offsets with one acknowledgement batch each."""
        batches = tuple(
            fetch.AcknowledgementBatch(
                first_offset=i64(each), last_offset=i64(each), acknowledge_types=(ACCEPT,)
            )
            for each in accepted
        )
        partition = fetch.FetchPartition(partition_index=i32(0), acknowledgement_batches=batches)
        self._send(
            fetch.ShareFetchRequest(
                group_id=GroupId(self._group),
                member_id=self._member_id,
                share_session_epoch=self._next_session_epoch(),
                max_wait=i32Timedelta.parse(timedelta(milliseconds=wait_ms)),
                min_bytes=i32(1),
                max_bytes=i32(_MAX_BYTES),
                max_records=i32(records_max),
                batch_size=i32(records_max),
                topics=(fetch.FetchTopic(topic_id=self._topic_id, partitions=(partition,)),),
                forgotten_topics_data=(),
            )
        )

    def receive_fetch(self) -> list[int]:
        """The offsets acquired by the oldest outstanding fetch."""
        response = self._receive(ShareFetchResponse)
        _check(response.error_code)
        offsets: list[int] = []
        for topic in response.responses:
            for partition in topic.partitions:
                _check(partition.error_code)
                _check(ErrorCode(partition.acknowledge_error_code))
                for acquired in partition.acquired_records:
                    offsets.extend(range(acquired.first_offset, acquired.last_offset + 1))
        return offsets

    def accept_together(self, offsets: list[int]) -> None:
        """Accept neighbouring offsets with one request, as one range."""
        self._send_accept(offsets[0], offsets[-1])
        self._receive_accept()

    def accept_singly(self, offsets: list[int]) -> None:
        """Accept each offset with its own request; all are sent before the first answer is awaited."""
        for offset in offsets:
            self._send_accept(offset, offset)
        for _ in offsets:
            self._receive_accept()

    def close(self) -> None:
        """Close the connection, which ends the share session."""
        self._connection.socket.close()

    def _receive_accept(self) -> None:
        response = self._receive(ShareAcknowledgeResponse)
        _check(response.error_code)
        _check(response.responses[0].partitions[0].error_code)

    def _send_accept(self, first_offset: int, last_offset: int) -> None:
        batch = acknowledge.AcknowledgementBatch(
            first_offset=i64(first_offset), last_offset=i64(last_offset), acknowledge_types=(ACCEPT,)
        )
        partition = acknowledge.AcknowledgePartition(partition_index=i32(0), acknowledgement_batches=(batch,))
        self._send(
            acknowledge.ShareAcknowledgeRequest(
                group_id=GroupId(self._group),
                member_id=self._member_id,
                share_session_epoch=self._next_session_epoch(),
                topics=(acknowledge.AcknowledgeTopic(topic_id=self._topic_id, partitions=(partition,)),),
            )
        )

    def _next_session_epoch(self) -> i32:
        session_epoch = i32(self._session_epoch)
        self._session_epoch += 1
        return session_epoch

    def _send(self, request: Any) -> None:
        header = RequestHeader(
            request_api_key=request.__api_key__,
            request_api_version=request.__version__,
            correlation_id=i32(0),
            client_id="raw",
        )
        buffer = io.BytesIO()
        entity_writer(RequestHeader)(buffer, header)
        entity_writer(request.__class__)(buffer, request)
        self._connection.send(frame(buffer.getvalue()))

    def _receive(self, kind: type[Any]) -> Any:
        response, _ = entity_reader(kind)(self._connection.receive(), _RESPONSE_HEADER_BYTES)
        return response


class RawProducer:
    """Produces batches of one record to partition 0 of one topic."""

    def __init__(self, address: str, topic: str, value: bytes) -> None:
        self._connection = RawConnection(address, 60.0)
        self._request = produce_request(topic, one_record_batch(value))

    def send(self, count: int = 1) -> None:
        """Send `count` records, each in its own request."""
        self._connection.send(self._request * count)

    def receive(self, count: int = 1) -> None:
        """Wait until `count` records are confirmed."""
        for _ in range(count):
            response = self._connection.receive()
            (name_length,) = struct.unpack_from(">h", response, 8)
            (code,) = struct.unpack_from(">h", response, 18 + name_length)
            _check(ErrorCode(code))

    def close(self) -> None:
        """Close the connection."""
        self._connection.socket.close()


def one_record_batch(value: bytes) -> bytes:
    """A record batch (format 2) with this value as its only record."""
    body = b"\x00\x00\x00\x01" + _zigzag(len(value)) + value + b"\x00"
    record = _zigzag(len(body)) + body
    checked = struct.pack(">hiqqqhii", 0, 0, 0, 0, -1, -1, -1, 1) + record
    return struct.pack(">qiibI", 0, len(checked) + 9, -1, 2, crc32c(checked)) + checked


def _zigzag(number: int) -> bytes:
    """A non-negative number as a signed varint."""
    number <<= 1
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def _check(code: ErrorCode) -> None:
    if code is not ErrorCode.none:
        raise RuntimeError(f"the broker answered {code!r}")
