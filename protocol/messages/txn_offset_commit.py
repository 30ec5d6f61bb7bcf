"""TxnOffsetCommit (key 28, KIP-98, KIP-447, KIP-1319): the messages of versions 5 and 6.

`ByName` is versions 0 to 5, `ById` is 6.
"""

from kio.schema.txn_offset_commit.v5.request import TxnOffsetCommitRequest as TxnOffsetCommitRequestByName
from kio.schema.txn_offset_commit.v5.request import TxnOffsetCommitRequestPartition as TxnOffsetToCommit
from kio.schema.txn_offset_commit.v5.request import TxnOffsetCommitRequestTopic as TxnTopicToCommitByName
from kio.schema.txn_offset_commit.v5.response import TxnOffsetCommitResponse as TxnOffsetCommitResponseByName
from kio.schema.txn_offset_commit.v5.response import TxnOffsetCommitResponsePartition as TxnCommittedPartition
from kio.schema.txn_offset_commit.v5.response import TxnOffsetCommitResponseTopic as TxnCommittedTopicByName

from barnabas.protocol.newer.txn_offset_commit_v6 import (
    TxnOffsetCommitRequest as TxnOffsetCommitRequestById,
)
from barnabas.protocol.newer.txn_offset_commit_v6 import TxnOffsetCommitRequestTopic as TxnTopicToCommitById
from barnabas.protocol.newer.txn_offset_commit_v6 import (
    TxnOffsetCommitResponse as TxnOffsetCommitResponseById,
)
from barnabas.protocol.newer.txn_offset_commit_v6 import TxnOffsetCommitResponseTopic as TxnCommittedTopicById

__all__ = [
    "TxnCommittedPartition",
    "TxnCommittedTopicById",
    "TxnCommittedTopicByName",
    "TxnOffsetCommitRequestById",
    "TxnOffsetCommitRequestByName",
    "TxnOffsetCommitResponseById",
    "TxnOffsetCommitResponseByName",
    "TxnOffsetToCommit",
    "TxnTopicToCommitById",
    "TxnTopicToCommitByName",
]
