"""The requests: one of each kind that names thousands of topics, partitions, groups or resources.

Their versions are also served by Apache Kafka 4.3. Some name existing objects, so that each entry causes
work. Others name missing objects, so that only the size of a request limits their number.
"""

from __future__ import annotations

import io
import uuid
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, Final, NamedTuple, cast

import kio.schema.api_versions.v3.request as api_versions
import kio.schema.consumer_group_heartbeat.v0.request as consumer_group_heartbeat
import kio.schema.create_topics.v7.request as create_topics
import kio.schema.delete_groups.v2.request as delete_groups
import kio.schema.delete_topics.v6.request as delete_topics
import kio.schema.describe_configs.v4.request as describe_configs
import kio.schema.describe_groups.v5.request as describe_groups
import kio.schema.describe_transactions.v0.request as describe_transactions
import kio.schema.fetch.v12.request as fetch
import kio.schema.find_coordinator.v6.request as find_coordinator
import kio.schema.incremental_alter_configs.v1.request as incremental_alter_configs
import kio.schema.list_offsets.v10.request as list_offsets
import kio.schema.metadata.v12.request as metadata
import kio.schema.offset_commit.v9.request as offset_commit
import kio.schema.offset_fetch.v9.request as offset_fetch
import kio.schema.produce.v9.request as produce
import kio.schema.share_acknowledge.v1.request as share_acknowledge
import kio.schema.share_fetch.v1.request as share_fetch
import kio.schema.share_group_describe.v1.request as share_group_describe
import kio.schema.share_group_heartbeat.v1.request as share_group_heartbeat
from kio.schema.request_header.v2.header import RequestHeader
from kio.schema.types import BrokerId, GroupId, TopicName, TransactionalId
from kio.serial import entity_writer
from kio.static.primitive import Records, i8, i16, i32, i32Timedelta, i64
from tests.clients.raw_frames import Batch, frame

TOPIC_COUNT: Final = 10_000
"""Topics of one partition that CreateTopics creates: the most that one request may ask for."""
MISSING_COUNT: Final = 100_000
"""The number of topics, partitions or groups that are named and do not exist."""
GROUP: Final = "large"

_NO_EPOCH: Final = i32(-1)
_TOPIC_RESOURCE: Final = i8(2)
_RECORDS: Final = cast("Records", Batch().encode())
_SECONDS = i32Timedelta.parse(timedelta(seconds=30))
_NO_WAIT = i32Timedelta.parse(timedelta())
_NAMES: Final = tuple(TopicName(f"large-{number:05}") for number in range(TOPIC_COUNT))
_MISSING_NAMES: Final = tuple(TopicName(f"missing-{number:06}") for number in range(MISSING_COUNT))
_MISSING_TOPIC: Final = TopicName("missing")
_MISSING_ID: Final = uuid.UUID("01234567-89ab-cdef-0123-456789abcdef")
_MISSING_PARTITIONS: Final = tuple(map(i32, range(MISSING_COUNT)))
_GROUP_IDS: Final = tuple(GroupId(f"group-{number:06}") for number in range(MISSING_COUNT))


class LargeRequest(NamedTuple):
    """One request. `make` gets the ids of the existing topics, in the order of their creation."""

    name: str
    make: Callable[[Sequence[uuid.UUID]], Any]

    def __str__(self) -> str:
        return self.name


def encoded(request: Any) -> bytes:
    """The whole frame of a kio message."""
    header = RequestHeader(
        request_api_key=request.__api_key__,
        request_api_version=request.__version__,
        correlation_id=i32(0),
        client_id="large",
    )
    buffer = io.BytesIO()
    entity_writer(RequestHeader)(buffer, header)
    entity_writer(request.__class__)(buffer, request)
    return frame(buffer.getvalue())


def _create_topics(_: Sequence[uuid.UUID]) -> Any:
    return create_topics.CreateTopicsRequest(
        topics=tuple(
            create_topics.CreatableTopic(
                name=name, num_partitions=i32(1), replication_factor=i16(1), assignments=(), configs=()
            )
            for name in _NAMES
        )
    )


def _api_versions(_: Sequence[uuid.UUID]) -> Any:
    """A small request, which shows how long the broker's other work makes a client wait."""
    return api_versions.ApiVersionsRequest(client_software_name="large", client_software_version="1")


def _create_again(topic_ids: Sequence[uuid.UUID]) -> Any:
    """All topics are refused."""
    return _create_topics(topic_ids)


def _delete_topics(topic_ids: Sequence[uuid.UUID]) -> Any:
    states = tuple(delete_topics.DeleteTopicState(name=None, topic_id=one) for one in topic_ids)
    return delete_topics.DeleteTopicsRequest(topics=states, timeout=_SECONDS)


def _delete_missing(_: Sequence[uuid.UUID]) -> Any:
    states = tuple(delete_topics.DeleteTopicState(name=name, topic_id=None) for name in _MISSING_NAMES)
    return delete_topics.DeleteTopicsRequest(topics=states, timeout=_SECONDS)


def _metadata(names: Sequence[TopicName] | None, _: Sequence[uuid.UUID]) -> Any:
    topics = None
    if names is not None:
        topics = tuple(metadata.MetadataRequestTopic(topic_id=None, name=name) for name in names)
    return metadata.MetadataRequest(
        topics=topics, allow_auto_topic_creation=False, include_topic_authorized_operations=False
    )


def _list_offsets(
    timestamp: int, wanted: Sequence[tuple[TopicName, Sequence[i32]]], _: Sequence[uuid.UUID]
) -> Any:
    return list_offsets.ListOffsetsRequest(
        replica_id=BrokerId(-1),
        isolation_level=i8(0),
        timeout=_SECONDS,
        topics=tuple(
            list_offsets.ListOffsetsTopic(
                name=name,
                partitions=tuple(
                    list_offsets.ListOffsetsPartition(partition_index=index, timestamp=i64(timestamp))
                    for index in indexes
                ),
            )
            for name, indexes in wanted
        ),
    )


def _fetch(wanted: Sequence[tuple[TopicName, Sequence[i32]]], _: Sequence[uuid.UUID]) -> Any:
    return fetch.FetchRequest(
        replica_id=BrokerId(-1),
        max_wait=_NO_WAIT,
        min_bytes=i32(1),
        session_epoch=i32(0),
        topics=tuple(
            fetch.FetchTopic(
                topic=name,
                partitions=tuple(
                    fetch.FetchPartition(
                        partition=index, fetch_offset=i64(0), partition_max_bytes=i32(1 << 20)
                    )
                    for index in indexes
                ),
            )
            for name, indexes in wanted
        ),
        forgotten_topics_data=(),
    )


def _share_fetch(wanted: Sequence[tuple[uuid.UUID, Sequence[i32]]], _: Sequence[uuid.UUID]) -> Any:
    return share_fetch.ShareFetchRequest(
        group_id=GroupId(GROUP),
        member_id=str(uuid.uuid4()),
        share_session_epoch=i32(0),
        max_wait=_NO_WAIT,
        min_bytes=i32(1),
        max_records=i32(500),
        batch_size=i32(500),
        topics=tuple(
            share_fetch.FetchTopic(
                topic_id=topic_id,
                partitions=tuple(
                    share_fetch.FetchPartition(partition_index=index, acknowledgement_batches=())
                    for index in indexes
                ),
            )
            for topic_id, indexes in wanted
        ),
        forgotten_topics_data=(),
    )


def _share_fetch_existing(topic_ids: Sequence[uuid.UUID]) -> Any:
    return _share_fetch([(one, _ZERO) for one in topic_ids], topic_ids)


def _share_acknowledge(topic_ids: Sequence[uuid.UUID]) -> Any:
    """Without a session, so everything is refused."""
    batch = share_acknowledge.AcknowledgementBatch(
        first_offset=i64(0), last_offset=i64(0), acknowledge_types=(i8(1),)
    )
    partitions = tuple(
        share_acknowledge.AcknowledgePartition(partition_index=index, acknowledgement_batches=(batch,))
        for index in _MISSING_PARTITIONS
    )
    return share_acknowledge.ShareAcknowledgeRequest(
        group_id=GroupId(GROUP),
        member_id=str(uuid.uuid4()),
        share_session_epoch=i32(1),
        topics=(share_acknowledge.AcknowledgeTopic(topic_id=_MISSING_ID, partitions=partitions),),
    )


def _share_group_heartbeat(names: Sequence[TopicName], _: Sequence[uuid.UUID]) -> Any:
    return share_group_heartbeat.ShareGroupHeartbeatRequest(
        group_id=GroupId(f"share-{len(names)}"),
        member_id=str(uuid.uuid4()),
        member_epoch=i32(0),
        subscribed_topic_names=tuple(names),
    )


def _consumer_group_heartbeat(names: Sequence[TopicName], _: Sequence[uuid.UUID]) -> Any:
    return consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
        group_id=GroupId(f"consumer-{len(names)}"),
        member_id="",
        member_epoch=i32(0),
        rebalance_timeout=_SECONDS,
        subscribed_topic_names=tuple(names),
        topic_partitions=(),
    )


def _offset_commit(wanted: Sequence[tuple[TopicName, Sequence[i32]]], _: Sequence[uuid.UUID]) -> Any:
    return offset_commit.OffsetCommitRequest(
        group_id=GroupId(GROUP),
        member_id="",
        topics=tuple(
            offset_commit.OffsetCommitRequestTopic(
                name=name,
                partitions=tuple(
                    offset_commit.OffsetCommitRequestPartition(
                        partition_index=index, committed_offset=i64(0), committed_metadata=None
                    )
                    for index in indexes
                ),
            )
            for name, indexes in wanted
        ),
    )


def _offset_fetch(wanted: Sequence[tuple[TopicName, Sequence[i32]]] | None, _: Sequence[uuid.UUID]) -> Any:
    topics = None
    if wanted is not None:
        topics = tuple(
            offset_fetch.OffsetFetchRequestTopics(name=name, partition_indexes=tuple(indexes))
            for name, indexes in wanted
        )
    group = offset_fetch.OffsetFetchRequestGroup(group_id=GroupId(GROUP), topics=topics)
    return offset_fetch.OffsetFetchRequest(groups=(group,))


def _produce(wanted: Sequence[tuple[TopicName, Sequence[i32]]], _: Sequence[uuid.UUID]) -> Any:
    return produce.ProduceRequest(
        acks=i16(-1),
        timeout=_SECONDS,
        topic_data=tuple(
            produce.TopicProduceData(
                name=name,
                partition_data=tuple(
                    produce.PartitionProduceData(index=index, records=_RECORDS) for index in indexes
                ),
            )
            for name, indexes in wanted
        ),
    )


def _describe_configs(names: Sequence[TopicName], _: Sequence[uuid.UUID]) -> Any:
    return describe_configs.DescribeConfigsRequest(
        resources=tuple(
            describe_configs.DescribeConfigsResource(
                resource_type=_TOPIC_RESOURCE, resource_name=name, configuration_keys=None
            )
            for name in names
        )
    )


def _alter_configs(names: Sequence[TopicName], _: Sequence[uuid.UUID]) -> Any:
    setting = incremental_alter_configs.AlterableConfig(
        name="retention.ms", config_operation=i8(0), value="1000000"
    )
    return incremental_alter_configs.IncrementalAlterConfigsRequest(
        resources=tuple(
            incremental_alter_configs.AlterConfigsResource(
                resource_type=_TOPIC_RESOURCE, resource_name=name, configs=(setting,)
            )
            for name in names
        ),
        validate_only=False,
    )


def _describe_groups(_: Sequence[uuid.UUID]) -> Any:
    return describe_groups.DescribeGroupsRequest(groups=_GROUP_IDS, include_authorized_operations=False)


def _describe_share_groups(_: Sequence[uuid.UUID]) -> Any:
    return share_group_describe.ShareGroupDescribeRequest(
        group_ids=_GROUP_IDS, include_authorized_operations=False
    )


def _delete_groups(_: Sequence[uuid.UUID]) -> Any:
    return delete_groups.DeleteGroupsRequest(groups_names=_GROUP_IDS)


def _describe_transactions(_topic_ids: Sequence[uuid.UUID]) -> Any:
    return describe_transactions.DescribeTransactionsRequest(
        transactional_ids=tuple(map(TransactionalId, _GROUP_IDS))
    )


def _find_coordinators(_: Sequence[uuid.UUID]) -> Any:
    return find_coordinator.FindCoordinatorRequest(key_type=i8(0), coordinator_keys=tuple(_GROUP_IDS))


_ZERO: Final = (i32(0),)
_EXISTING: Final = tuple((name, _ZERO) for name in _NAMES)
_MISSING: Final = ((_MISSING_TOPIC, _MISSING_PARTITIONS),)
_MISSING_TOPICS: Final = tuple((name, _ZERO) for name in _MISSING_NAMES)

CREATE_TOPICS: Final = LargeRequest(f"CreateTopics, {TOPIC_COUNT:,} topics", _create_topics)
"""The first request: most of the others name its topics."""

_T, _M = f"{TOPIC_COUNT:,}", f"{MISSING_COUNT:,} missing"

REQUESTS: Final[Sequence[LargeRequest]] = (
    CREATE_TOPICS,
    LargeRequest(f"CreateTopics, {_T} that exist", _create_again),
    LargeRequest("Metadata, all topics", partial(_metadata, None)),
    LargeRequest(f"Metadata, {_T} topics", partial(_metadata, _NAMES)),
    LargeRequest(f"Metadata, {_M} topics", partial(_metadata, _MISSING_NAMES)),
    LargeRequest(f"Produce, {_T} partitions", partial(_produce, _EXISTING)),
    LargeRequest(f"Produce, {_M} partitions", partial(_produce, _MISSING)),
    LargeRequest(f"Fetch, {_T} partitions", partial(_fetch, _EXISTING)),
    LargeRequest(f"Fetch, {_M} partitions", partial(_fetch, _MISSING)),
    LargeRequest(f"Fetch, {_M} topics", partial(_fetch, _MISSING_TOPICS)),
    LargeRequest(f"ListOffsets, {_T} partitions", partial(_list_offsets, -1, _EXISTING)),
    LargeRequest(f"ListOffsets by time, {_T}", partial(_list_offsets, 1, _EXISTING)),
    LargeRequest(f"ListOffsets, {_M} partitions", partial(_list_offsets, -1, _MISSING)),
    LargeRequest(f"OffsetCommit, {_T} partitions", partial(_offset_commit, _EXISTING)),
    LargeRequest(f"OffsetCommit, {_M} partitions", partial(_offset_commit, _MISSING)),
    LargeRequest(f"OffsetFetch, {_T} partitions", partial(_offset_fetch, _EXISTING)),
    LargeRequest("OffsetFetch, all of a group", partial(_offset_fetch, None)),
    LargeRequest(f"OffsetFetch, {_M} partitions", partial(_offset_fetch, _MISSING)),
    LargeRequest(f"ShareFetch, {_T} partitions", _share_fetch_existing),
    LargeRequest(f"ShareFetch, {_M} partitions", partial(_share_fetch, [(_MISSING_ID, _MISSING_PARTITIONS)])),
    LargeRequest(f"ShareAcknowledge, {_M} partitions", _share_acknowledge),
    LargeRequest(f"ShareGroupHeartbeat, {_T} topics", partial(_share_group_heartbeat, _NAMES)),
    LargeRequest(f"ShareGroupHeartbeat, {_M} topics", partial(_share_group_heartbeat, _MISSING_NAMES)),
    LargeRequest(f"ConsumerGroupHeartbeat, {_T} topics", partial(_consumer_group_heartbeat, _NAMES)),
    LargeRequest(f"ConsumerGroupHeartbeat, {_M} topics", partial(_consumer_group_heartbeat, _MISSING_NAMES)),
    LargeRequest(f"DescribeConfigs, {_T} topics", partial(_describe_configs, _NAMES)),
    LargeRequest(f"IncrementalAlterConfigs, {_T} topics", partial(_alter_configs, _NAMES)),
    LargeRequest(f"DescribeGroups, {_M} groups", _describe_groups),
    LargeRequest(f"ShareGroupDescribe, {_M} groups", _describe_share_groups),
    LargeRequest(f"DeleteGroups, {_M} groups", _delete_groups),
    LargeRequest(f"FindCoordinator, {_M} groups", _find_coordinators),
    LargeRequest(f"DescribeTransactions, {_M} ids", _describe_transactions),
    LargeRequest("ApiVersions", _api_versions),
    LargeRequest(f"DeleteTopics, {_M} topics", _delete_missing),
    LargeRequest(f"DeleteTopics, {_T} topics", _delete_topics),
)
"""In the order of sending."""
