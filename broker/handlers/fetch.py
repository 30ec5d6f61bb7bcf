"""Fetch (key 1, versions 4 to 18; KIP-74, KIP-227, KIP-516): slices of the log for ordinary consumers.

A fetch is answered when `min_bytes` are there, when a partition has an error, or after `max_wait`. Within
`max_bytes` and what the broker's `ResponseBudget` allows, the first partition with records gives at least one
batch however large it is. Share state never shows: it is cut out of the slices, and the high watermark told
is the visible one.

Sessions are declined: each answer bears session id 0, so clients go on with full requests (KIP-227 allows
it). A replica is answered as a consumer is, unless it follows the metadata log (`fetch_metadata_log.py`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from barnabas.broker.dispatch import EncodedBody, Reply, RequestContext, Response
from barnabas.broker.handlers.fetch_metadata_log import fetch_metadata_log, follows_metadata_log
from barnabas.broker.handlers.partitions import check_leader_epoch
from barnabas.broker.purgatory import DelayedOperation
from barnabas.broker.replies import settle
from barnabas.protocol.encode.fetch import FetchPartitionResult, FetchTopicResult, encode_fetch_response
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.messages.fetch import (
    FetchPartitionById,
    FetchPartitionByName,
    FetchRequestById,
    FetchRequestByName,
)
from barnabas.protocol.primitive import to_milliseconds
from barnabas.storage.errors import StorageError

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.coordinator.metadata.image import Topic
    from barnabas.storage.log import PartitionLog

_NO_ID = UUID(int=0)
_READ_COMMITTED = 1
_FULL_FETCH_EPOCHS = (-1, 0)

FetchRequest = FetchRequestByName | FetchRequestById
FetchPartition = FetchPartitionByName | FetchPartitionById


class _WantedTopic(NamedTuple):
    """A topic of a request; `topic` is None, and the error says why, if there is no such."""

    name: str
    topic_id: UUID
    topic: Topic | None
    unknown: ErrorCode
    partitions: Sequence[FetchPartition]


def handle_fetch(broker: Broker, context: RequestContext, request: FetchRequest) -> Reply:
    if follows_metadata_log(request, broker, context):
        return fetch_metadata_log(broker, context, request)
    if request.session_epoch not in _FULL_FETCH_EPOCHS:
        body = encode_fetch_response(
            context.api_version, 0, ErrorCode.fetch_session_id_not_found.value, 0, ()
        )
        return EncodedBody(body)
    topics = _wanted_topics(broker, request)
    operation = _FetchOperation(broker, context.api_version, request, topics)
    opening = broker.open_logs(
        [
            (wanted.topic, one.partition)
            for wanted in topics
            if wanted.topic is not None
            for one in wanted.partitions
        ]
    )
    return operation.start() if opening is None else _start_when_open(operation, opening)


async def _start_when_open(operation: _FetchOperation, opening: Awaitable[None]) -> Response:
    await opening
    return await settle(operation.start())


def _wanted_topics(broker: Broker, request: FetchRequest) -> list[_WantedTopic]:
    image = broker.metadata.image
    wanted: list[_WantedTopic] = []
    if isinstance(request, FetchRequestByName):
        for by_name in request.topics:
            topic = image.topics_by_name.get(by_name.topic)
            topic_id = _NO_ID if topic is None else topic.topic_id
            unknown = ErrorCode.unknown_topic_or_partition
            wanted.append(_WantedTopic(by_name.topic, topic_id, topic, unknown, by_name.partitions))
    else:
        for by_id in request.topics:
            topic = image.topics_by_id.get(by_id.topic_id or _NO_ID)
            name = "" if topic is None else topic.name
            unknown = ErrorCode.unknown_topic_id
            wanted.append(_WantedTopic(name, by_id.topic_id or _NO_ID, topic, unknown, by_id.partitions))
    return wanted


class _FetchOperation(DelayedOperation[EncodedBody]):
    """One fetch's wait, and the future of its response."""

    def __init__(
        self, broker: Broker, version: int, request: FetchRequest, topics: list[_WantedTopic]
    ) -> None:
        super().__init__()
        self._broker = broker
        self._version = version
        self._request = request
        self._topics = topics

    def start(self) -> Reply:
        """The response at once if nothing is to be waited for; else this operation, which waits."""
        max_wait_ms = to_milliseconds(self._request.max_wait)
        if max_wait_ms <= 0 or not self._request.topics:
            self.on_expire()
        elif not self.try_complete():
            deadline_ms = self._broker.clock.monotonic_ms() + max_wait_ms
            self._broker.purgatory.watch(self, self._keys(), deadline_ms)
            return self
        return self.result()

    def try_complete(self) -> bool:
        """See `DelayedOperation`."""
        if not self._broker.response_budget.bytes_max() or not self._has_enough():
            return False
        self.on_expire()
        return True

    def on_expire(self) -> None:
        """See `DelayedOperation`."""
        budget = self._broker.response_budget
        budget_bytes = budget.bytes_max()
        response_bytes_max = min(self._request.max_bytes, budget_bytes)
        bytes_left = response_bytes_max
        results: list[FetchTopicResult] = []
        for wanted in self._topics:
            partitions: list[FetchPartitionResult] = []
            for one in wanted.partitions:
                bytes_max = min(one.partition_max_bytes, bytes_left)
                is_first = bytes_left == response_bytes_max and budget_bytes > 0
                result = self._read(wanted, one, bytes_max, at_least_one=is_first)
                bytes_left -= sum(map(len, result.records))
                partitions.append(result)
            results.append(FetchTopicResult(wanted.name, wanted.topic_id, partitions))
        body = encode_fetch_response(self._version, 0, ErrorCode.none.value, 0, results)
        self.set_result(EncodedBody(body, budget.take(response_bytes_max - bytes_left)))

    def _keys(self) -> list[TopicIdPartition]:
        return [
            TopicIdPartition(wanted.topic_id, one.partition)
            for wanted in self._topics
            for one in wanted.partitions
        ]

    def _has_enough(self) -> bool:
        """Whether the bytes asked for are there, or an error that should not wait."""
        available_bytes = 0
        for wanted in self._topics:
            for one in wanted.partitions:
                try:
                    log = self._log(wanted, one)
                    available_bytes += log.available_bytes(
                        one.fetch_offset, upper_offset=self._upper_offset(log), enough=self._request.min_bytes
                    )
                except (ApiError, StorageError):
                    return True
                if available_bytes >= self._request.min_bytes:
                    return True
        return False

    def _upper_offset(self, log: PartitionLog) -> int:
        """Exclusive end of what this consumer may read."""
        return (
            log.last_stable_offset if self._request.isolation_level == _READ_COMMITTED else log.high_watermark
        )

    def _log(self, wanted: _WantedTopic, partition: FetchPartition) -> PartitionLog:
        """The partition's open log; ApiError if there is none, if it could not be opened, or if it is led in
        another epoch than the client thinks.
        """
        if wanted.topic is None:
            raise ApiError(wanted.unknown)
        if not 0 <= partition.partition < len(wanted.topic.partitions):
            raise ApiError(ErrorCode.unknown_topic_or_partition)
        log = self._broker.open_log(wanted.topic, partition.partition)
        if log is None:
            raise ApiError(ErrorCode.kafka_storage_error)
        check_leader_epoch(log.leader_epoch, partition.current_leader_epoch)
        return log

    def _read(
        self, wanted: _WantedTopic, partition: FetchPartition, bytes_max: int, *, at_least_one: bool
    ) -> FetchPartitionResult:
        try:
            log = self._log(wanted, partition)
            slice_ = log.read(
                partition.fetch_offset,
                bytes_max=bytes_max,
                upper_offset=self._upper_offset(log),
                at_least_one=at_least_one,
            )
        except (ApiError, StorageError) as error:
            return FetchPartitionResult(partition.partition, error.code.value, -1, -1, -1, None, ())
        aborted = () if self._request.isolation_level == _READ_COMMITTED else None
        return FetchPartitionResult(
            partition.partition,
            ErrorCode.none.value,
            log.high_watermark,
            log.last_stable_offset,
            log.log_start_offset,
            aborted,
            slice_.buffers,
        )
