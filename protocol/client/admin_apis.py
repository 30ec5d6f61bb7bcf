"""The client's side of the APIs that inspect and change topics, groups and their settings.

`consumer_apis` has those that read records and that consumers use. OffsetCommit and OffsetFetch end at
version 9, the last one with topic names.
"""

from __future__ import annotations

from typing import Final

from kio.schema.alter_share_group_offsets.v0.request import AlterShareGroupOffsetsRequest
from kio.schema.alter_share_group_offsets.v0.response import AlterShareGroupOffsetsResponse
from kio.schema.consumer_group_describe.v1.request import ConsumerGroupDescribeRequest
from kio.schema.consumer_group_describe.v1.response import ConsumerGroupDescribeResponse
from kio.schema.create_partitions.v3.request import CreatePartitionsRequest
from kio.schema.create_partitions.v3.response import CreatePartitionsResponse
from kio.schema.create_topics.v7.request import CreateTopicsRequest
from kio.schema.create_topics.v7.response import CreateTopicsResponse
from kio.schema.delete_groups.v2.request import DeleteGroupsRequest
from kio.schema.delete_groups.v2.response import DeleteGroupsResponse
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest
from kio.schema.delete_topics.v6.response import DeleteTopicsResponse
from kio.schema.describe_configs.v4.request import DescribeConfigsRequest
from kio.schema.describe_configs.v4.response import DescribeConfigsResponse
from kio.schema.describe_groups.v6.request import DescribeGroupsRequest
from kio.schema.describe_groups.v6.response import DescribeGroupsResponse
from kio.schema.describe_share_group_offsets.v1.request import DescribeShareGroupOffsetsRequest
from kio.schema.describe_share_group_offsets.v1.response import DescribeShareGroupOffsetsResponse
from kio.schema.incremental_alter_configs.v1.request import IncrementalAlterConfigsRequest
from kio.schema.incremental_alter_configs.v1.response import IncrementalAlterConfigsResponse
from kio.schema.list_groups.v5.request import ListGroupsRequest
from kio.schema.list_groups.v5.response import ListGroupsResponse
from kio.schema.offset_commit.v9.request import OffsetCommitRequest
from kio.schema.offset_commit.v9.response import OffsetCommitResponse
from kio.schema.offset_fetch.v9.request import OffsetFetchRequest
from kio.schema.offset_fetch.v9.response import OffsetFetchResponse
from kio.schema.read_share_group_state.v0.request import ReadShareGroupStateRequest
from kio.schema.read_share_group_state.v0.response import ReadShareGroupStateResponse
from kio.schema.share_group_describe.v1.request import ShareGroupDescribeRequest
from kio.schema.share_group_describe.v1.response import ShareGroupDescribeResponse

from barnabas.protocol.api import ApiKey
from barnabas.protocol.client.api import kio_api

CREATE_TOPICS: Final = kio_api(ApiKey.CREATE_TOPICS, range(5, 8), CreateTopicsRequest, CreateTopicsResponse)
CREATE_PARTITIONS: Final = kio_api(
    ApiKey.CREATE_PARTITIONS, range(2, 4), CreatePartitionsRequest, CreatePartitionsResponse
)
DELETE_TOPICS: Final = kio_api(ApiKey.DELETE_TOPICS, range(6, 7), DeleteTopicsRequest, DeleteTopicsResponse)
DESCRIBE_CONFIGS: Final = kio_api(
    ApiKey.DESCRIBE_CONFIGS, range(1, 5), DescribeConfigsRequest, DescribeConfigsResponse
)
INCREMENTAL_ALTER_CONFIGS: Final = kio_api(
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
    range(2),
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
DESCRIBE_SHARE_GROUP_OFFSETS: Final = kio_api(
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
    range(2),
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)
LIST_GROUPS: Final = kio_api(ApiKey.LIST_GROUPS, range(5, 6), ListGroupsRequest, ListGroupsResponse)
DESCRIBE_GROUPS: Final = kio_api(
    ApiKey.DESCRIBE_GROUPS, range(5, 7), DescribeGroupsRequest, DescribeGroupsResponse
)
CONSUMER_GROUP_DESCRIBE: Final = kio_api(
    ApiKey.CONSUMER_GROUP_DESCRIBE, range(2), ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
)
SHARE_GROUP_DESCRIBE: Final = kio_api(
    ApiKey.SHARE_GROUP_DESCRIBE, range(1, 2), ShareGroupDescribeRequest, ShareGroupDescribeResponse
)
DELETE_GROUPS: Final = kio_api(ApiKey.DELETE_GROUPS, range(1, 3), DeleteGroupsRequest, DeleteGroupsResponse)
OFFSET_FETCH: Final = kio_api(ApiKey.OFFSET_FETCH, range(8, 10), OffsetFetchRequest, OffsetFetchResponse)
OFFSET_COMMIT: Final = kio_api(ApiKey.OFFSET_COMMIT, range(8, 10), OffsetCommitRequest, OffsetCommitResponse)
ALTER_SHARE_GROUP_OFFSETS: Final = kio_api(
    ApiKey.ALTER_SHARE_GROUP_OFFSETS,
    range(1),
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)
READ_SHARE_GROUP_STATE: Final = kio_api(
    ApiKey.READ_SHARE_GROUP_STATE, range(1), ReadShareGroupStateRequest, ReadShareGroupStateResponse
)
