"""Fetch requests of the followers of the metadata log (KIP-595, KIP-630), for the handler in `fetch`.

- The listener for brokers serves requests that name another node as the replica (from version 15 on) and the
  topic by its id. Such a request names the one partition and nothing else.
- Records are read up to the high watermark, so no follower has a record that the leader can still lose.
- A follower below the log start, or without records while there is a snapshot, gets the id of the newest
  snapshot (`SnapshotId`). A follower with other records gets the offset to truncate to (`DivergingEpoch`).
  Either response has no records and does not wait.
- A response waits for records, or for a high watermark that the follower does not know (KIP-1166).
  `min_bytes` and the partition's own `max_bytes` have no effect, as in Kafka.
- INCONSISTENT_CLUSTER_ID and INVALID_REQUEST (other partitions) are errors of the whole request.
  INVALID_REQUEST (impossible offsets), FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH and KAFKA_STORAGE_ERROR are
  errors of the partition.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from barnabas.broker.handlers.common.replica_access import check_leader, is_follower, is_other_cluster
from barnabas.broker.network.handler import Reply, RequestContext
from barnabas.coordinator.metadata.followers import FollowerKey
from barnabas.coordinator.metadata.replication import DivergingEpoch, locate_follower
from barnabas.coordinator.metadata.snapshot import SnapshotId
from barnabas.coordinator.metadata.topic_names import METADATA_PARTITION, METADATA_TOPIC, METADATA_TOPIC_ID
from barnabas.protocol.decode.fetch import FetchBody, FetchPartition
from barnabas.protocol.encode.fetch import FetchPartitionResult, FetchTopicResult, encode_fetch_response
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.message_parts import NodeEndpoint
from barnabas.protocol.varint import Buffer
from barnabas.runtime.purgatory import DelayedOperation
from barnabas.runtime.response_budget import EncodedBody
from barnabas.storage.errors import StorageError

if TYPE_CHECKING:
    from barnabas.coordinator.metadata.controller import Controller
    from barnabas.runtime.clock import Clock
    from barnabas.runtime.purgatory import Purgatory
    from barnabas.runtime.response_budget import ResponseBudget

_NO_OFFSET: Final = -1


class MetadataFetchParts(Protocol):
    """The handler's parts that a fetch of the metadata log uses."""

    @property
    def clock(self) -> Clock: ...
    @property
    def metadata(self) -> Controller: ...
    @property
    def response_budget(self) -> ResponseBudget: ...
    @property
    def cluster_id(self) -> str: ...
    @property
    def node_id(self) -> int: ...
    @property
    def purgatory(self) -> Purgatory: ...


class _Found(NamedTuple):
    """The result of a read for the follower."""

    error_code: ErrorCode
    high_watermark: int = _NO_OFFSET
    records: Sequence[Buffer] = ()
    elsewhere: SnapshotId | DivergingEpoch | None = None


def follows_metadata_log(node_id: int, context: RequestContext, request: FetchBody) -> bool:
    """Whether a follower asks for the metadata log."""
    return (
        request.replica_id >= 0
        and is_follower(node_id, context, request.replica_id)
        and any(topic.reference == METADATA_TOPIC_ID for topic in request.topics)
    )


def fetch_metadata_log(parts: MetadataFetchParts, context: RequestContext, request: FetchBody) -> Reply:
    """The reply to a request that `follows_metadata_log`."""
    if is_other_cluster(parts.cluster_id, request.cluster_id):
        return _refused(context, ErrorCode.inconsistent_cluster_id)
    partitions = [partition for topic in request.topics for partition in topic.partitions]
    if (
        len(request.topics) != 1
        or len(partitions) != 1
        or partitions[0].partition != METADATA_PARTITION.partition
    ):
        return _refused(context, ErrorCode.invalid_request)
    return _MetadataFetch(parts, context, request, partitions[0]).start()


def _refused(context: RequestContext, error_code: ErrorCode) -> EncodedBody:
    return EncodedBody(encode_fetch_response(context.api_version, error_code.value, 0, ()))


class _MetadataFetch(DelayedOperation[EncodedBody]):
    """The fetch of one follower, and the completion of its response."""

    def __init__(
        self,
        parts: MetadataFetchParts,
        context: RequestContext,
        request: FetchBody,
        wanted: FetchPartition,
    ) -> None:
        super().__init__()
        self._parts = parts
        self._log = parts.metadata.log
        self._context = context
        self._request = request
        self._wanted = wanted

    def start(self) -> Reply:
        """This operation, which is done if it need not wait."""
        max_wait_ms = self._request.max_wait_ms
        if max_wait_ms == 0:
            self.on_expire()
        elif not self.try_complete():
            deadline_ms = self._parts.clock.monotonic_ms() + max_wait_ms
            self._parts.purgatory.watch(self, [METADATA_PARTITION], deadline_ms)
        return self

    def try_complete(self) -> bool:
        """See `DelayedOperation`."""
        found = self._find()
        is_empty = found.error_code is ErrorCode.none and not found.records and found.elsewhere is None
        if is_empty and self._wanted.high_watermark >= found.high_watermark:
            return False
        self.complete(self._encode(found))
        return True

    def on_expire(self) -> None:
        """See `DelayedOperation`."""
        self.complete(self._encode(self._find()))

    def _find(self) -> _Found:
        try:
            return self._read()
        except (ApiError, StorageError) as error:
            return _Found(error.code)

    def _read(self) -> _Found:
        """Raises `ApiError`, `StorageError`."""
        wanted, log = self._wanted, self._log
        self._check()
        high_watermark = log.store.high_watermark
        elsewhere = locate_follower(
            log.store, log.snapshots.ids, wanted.fetch_offset, wanted.last_fetched_epoch
        )
        if elsewhere is not None:
            return _Found(ErrorCode.none, high_watermark, elsewhere=elsewhere)
        key = FollowerKey(self._request.replica_id, wanted.replica_directory_id)
        log.follower_heard(key, wanted.fetch_offset)
        bytes_max = min(self._request.max_bytes, self._parts.response_budget.bytes_max())
        slice_ = log.store.read(wanted.fetch_offset, bytes_max=bytes_max)
        return _Found(ErrorCode.none, high_watermark, slice_.buffers)

    def _check(self) -> None:
        """Raises `ApiError` on impossible offsets and on another leader epoch."""
        wanted = self._wanted
        is_possible = (
            self._request.max_wait_ms >= 0
            and wanted.fetch_offset >= 0
            and 0 <= wanted.last_fetched_epoch <= wanted.current_leader_epoch
        )
        if not is_possible:
            raise ApiError(ErrorCode.invalid_request)
        check_leader(self._parts.metadata.node_epoch, wanted.current_leader_epoch)

    def _encode(self, found: _Found) -> EncodedBody:
        parts, listener = self._parts, self._context.listener
        elsewhere = found.elsewhere
        result = FetchPartitionResult(
            METADATA_PARTITION.partition,
            found.error_code.value,
            found.high_watermark,
            _NO_OFFSET,
            self._log.store.log_start_offset,
            None,
            found.records,
            diverging=elsewhere if isinstance(elsewhere, DivergingEpoch) else None,
            current_leader=(parts.node_id, parts.metadata.node_epoch),
            snapshot_id=elsewhere if isinstance(elsewhere, SnapshotId) else None,
        )
        endpoint = NodeEndpoint(parts.node_id, listener.advertised_host, listener.advertised_port)
        topic = FetchTopicResult(METADATA_TOPIC, METADATA_TOPIC_ID, [result])
        body = encode_fetch_response(
            self._context.api_version, ErrorCode.none.value, 0, [topic], node_endpoints=[endpoint]
        )
        return EncodedBody(body, parts.response_budget.take(sum(map(len, found.records))))
