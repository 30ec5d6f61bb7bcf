"""The client's side of the APIs that inspect and change topics, groups and their settings.

`client_apis` has those that read records and that consumers use.
"""

from __future__ import annotations

from typing import Final

from barnabas.protocol.api import ApiKey
from barnabas.protocol.client_api import kio_api
from barnabas.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)
from barnabas.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from barnabas.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from barnabas.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)
from barnabas.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from barnabas.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from barnabas.protocol.messages.offset_commit import OffsetCommitRequestByName, OffsetCommitResponseByName
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequestByName, OffsetFetchResponseByName
from barnabas.protocol.messages.read_share_group_state import (
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
)

CREATE_TOPICS: Final = kio_api(ApiKey.CREATE_TOPICS, range(5, 8), CreateTopicsRequest, CreateTopicsResponse)
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
OFFSET_FETCH: Final = kio_api(
    ApiKey.OFFSET_FETCH, range(8, 10), OffsetFetchRequestByName, OffsetFetchResponseByName
)
OFFSET_COMMIT: Final = kio_api(
    ApiKey.OFFSET_COMMIT, range(8, 10), OffsetCommitRequestByName, OffsetCommitResponseByName
)
ALTER_SHARE_GROUP_OFFSETS: Final = kio_api(
    ApiKey.ALTER_SHARE_GROUP_OFFSETS,
    range(1),
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)
READ_SHARE_GROUP_STATE: Final = kio_api(
    ApiKey.READ_SHARE_GROUP_STATE, range(1), ReadShareGroupStateRequest, ReadShareGroupStateResponse
)
