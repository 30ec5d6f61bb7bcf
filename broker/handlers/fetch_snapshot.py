"""FetchSnapshot (key 59, versions 0 and 1; KIP-630, KIP-853): a piece of a metadata snapshot for a follower.

- A follower learns the snapshot's id from Fetch (`SnapshotId`). A piece has at most `max_bytes` and no more
  than the `ResponseBudget` allows, and may end anywhere. The follower continues at the next position until it
  has `size` bytes.
- The listener for brokers alone serves and lists it, as do the listeners of controllers in Kafka.
- INCONSISTENT_CLUSTER_ID and INVALID_REQUEST are errors of the whole request. These are errors of the
  partition, together with the current leader: UNKNOWN_TOPIC_OR_PARTITION, FENCED_LEADER_EPOCH,
  UNKNOWN_LEADER_EPOCH, SNAPSHOT_NOT_FOUND, POSITION_OUT_OF_RANGE, KAFKA_STORAGE_ERROR. Apache Kafka 4.3
  intends the same, but cannot write a response without records; there the whole request is
  UNKNOWN_SERVER_ERROR.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kio.schema.fetch_snapshot.v1.request import FetchSnapshotRequest
from kio.schema.fetch_snapshot.v1.request import PartitionSnapshot as PartitionSnapshotRequest
from kio.schema.fetch_snapshot.v1.response import (
    FetchSnapshotResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionSnapshot,
    TopicSnapshot,
)
from kio.schema.fetch_snapshot.v1.response import SnapshotId as WireSnapshotId

from barnabas.broker.handlers.common.replica_access import check_leader, is_follower, is_other_cluster
from barnabas.coordinator.metadata.followers import FollowerKey
from barnabas.coordinator.metadata.snapshot import BOOTSTRAP_ID, SnapshotId
from barnabas.coordinator.metadata.topic_names import METADATA_PARTITION, METADATA_TOPIC
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.primitive import BrokerId, Records, TopicName, i32, i64, milliseconds, u16

if TYPE_CHECKING:
    from barnabas.broker.network.handler import Reply, RequestContext
    from barnabas.coordinator.metadata.controller import Controller
    from barnabas.runtime.response_budget import ResponseBudget


class Parts(NamedTuple):
    metadata: Controller
    response_budget: ResponseBudget
    cluster_id: str
    node_id: int


def handle_fetch_snapshot(parts: Parts, context: RequestContext, request: FetchSnapshotRequest) -> Reply:
    if is_other_cluster(parts.cluster_id, request.cluster_id):
        return _refused(ErrorCode.inconsistent_cluster_id)
    if len(request.topics) != 1 or len(request.topics[0].partitions) != 1 or request.max_bytes < 0:
        return _refused(ErrorCode.invalid_request)
    topic = request.topics[0]
    wanted = topic.partitions[0]
    is_known = topic.name == METADATA_TOPIC and wanted.partition == METADATA_PARTITION.partition
    if not (is_known and is_follower(parts.node_id, context, request.replica_id)):
        return _response(
            parts.node_id, context, topic.name, _piece(parts, wanted, ErrorCode.unknown_topic_or_partition)
        )
    return _read(parts, context, request, wanted)


async def _read(
    parts: Parts, context: RequestContext, request: FetchSnapshotRequest, wanted: PartitionSnapshotRequest
) -> FetchSnapshotResponse:
    size_bytes, data, error_code = 0, b"", ErrorCode.none
    try:
        size_bytes, data = await _read_piece(parts, request, wanted)
    except ApiError as error:
        error_code = error.code
    except OSError:
        error_code = ErrorCode.kafka_storage_error
    piece = _piece(parts, wanted, error_code, size_bytes=size_bytes, data=data)
    return _response(parts.node_id, context, METADATA_TOPIC, piece)


async def _read_piece(
    parts: Parts, request: FetchSnapshotRequest, wanted: PartitionSnapshotRequest
) -> tuple[int, bytes]:
    """(size of the whole snapshot, the piece); raises `ApiError`, `OSError`."""
    check_leader(parts.metadata.node_epoch, wanted.current_leader_epoch)
    log = parts.metadata.log
    snapshot_id = SnapshotId(wanted.snapshot_id.end_offset, wanted.snapshot_id.epoch)
    stored = None if snapshot_id == BOOTSTRAP_ID else log.snapshots.find(snapshot_id)
    if stored is None:
        raise ApiError(ErrorCode.snapshot_not_found)
    if not 0 <= wanted.position < stored.size_bytes:
        raise ApiError(ErrorCode.position_out_of_range)
    # Before the read, because this keeps the snapshot from being deleted.
    log.follower_heard(FollowerKey(request.replica_id, wanted.replica_directory_id), snapshot_id.end_offset)
    bytes_max = min(request.max_bytes, parts.response_budget.bytes_max())
    data = await log.snapshots.read(snapshot_id, wanted.position, bytes_max)
    if data is None:
        raise ApiError(ErrorCode.snapshot_not_found)
    return stored.size_bytes, data


def _refused(error_code: ErrorCode) -> FetchSnapshotResponse:
    return FetchSnapshotResponse(throttle_time=milliseconds(0), error_code=error_code, topics=())


def _piece(
    parts: Parts,
    wanted: PartitionSnapshotRequest,
    error_code: ErrorCode,
    *,
    size_bytes: int = 0,
    data: bytes = b"",
) -> PartitionSnapshot:
    is_read = error_code is ErrorCode.none
    return PartitionSnapshot(
        index=wanted.partition,
        error_code=error_code,
        snapshot_id=WireSnapshotId(
            end_offset=wanted.snapshot_id.end_offset if is_read else i64(0),
            epoch=wanted.snapshot_id.epoch if is_read else i32(0),
        ),
        current_leader=LeaderIdAndEpoch(
            leader_id=BrokerId(parts.node_id), leader_epoch=i32(parts.metadata.node_epoch)
        ),
        size=i64(size_bytes),
        position=wanted.position if is_read else i64(0),
        unaligned_records=Records(data),
    )


def _response(
    node_id: int, context: RequestContext, topic_name: str, piece: PartitionSnapshot
) -> FetchSnapshotResponse:
    listener = context.listener
    return FetchSnapshotResponse(
        throttle_time=milliseconds(0),
        error_code=ErrorCode.none,
        topics=(TopicSnapshot(name=TopicName(topic_name), partitions=(piece,)),),
        node_endpoints=(
            NodeEndpoint(
                node_id=BrokerId(node_id),
                host=listener.advertised_host,
                port=u16(listener.advertised_port),
            ),
        ),
    )
