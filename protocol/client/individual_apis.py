"""The client's side of APIs whose requests have tags for individual commits and shared partitions.

They are for brokers that list the feature `individual.commit` (docs/protocol.md). Offsets outside of
transactions name topics by id. Offsets in transactions name them, and end at the version before KIP-890's
second part, as `producer_apis` explains.
"""

from __future__ import annotations

from typing import Final

from barnabas.protocol.api import ApiKey
from barnabas.protocol.client.api import kio_api
from barnabas.protocol.client.consumer_apis import CONSUMER_GROUP_HEARTBEAT
from barnabas.protocol.extended import INDIVIDUAL_COMMIT
from barnabas.protocol.extended.consumer_group_describe_v1 import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from barnabas.protocol.extended.offset_commit_v10 import OffsetCommitRequest, OffsetCommitResponse
from barnabas.protocol.extended.offset_fetch_v10 import OffsetFetchRequest, OffsetFetchResponse
from barnabas.protocol.extended.txn_offset_commit_v4 import TxnOffsetCommitRequest, TxnOffsetCommitResponse

HEARTBEAT_OF_SHARER: Final = CONSUMER_GROUP_HEARTBEAT._replace(feature=INDIVIDUAL_COMMIT)
DESCRIBE_SHARERS: Final = kio_api(
    ApiKey.CONSUMER_GROUP_DESCRIBE, range(1, 2), ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
)._replace(feature=INDIVIDUAL_COMMIT)
COMMIT_RANGES: Final = kio_api(
    ApiKey.OFFSET_COMMIT, range(10, 11), OffsetCommitRequest, OffsetCommitResponse
)._replace(feature=INDIVIDUAL_COMMIT)
FETCH_RANGES: Final = kio_api(
    ApiKey.OFFSET_FETCH, range(10, 11), OffsetFetchRequest, OffsetFetchResponse
)._replace(feature=INDIVIDUAL_COMMIT)
COMMIT_RANGES_IN_TRANSACTION: Final = kio_api(
    ApiKey.TXN_OFFSET_COMMIT, range(4, 5), TxnOffsetCommitRequest, TxnOffsetCommitResponse
)._replace(feature=INDIVIDUAL_COMMIT)
