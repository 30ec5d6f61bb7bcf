"""TxnOffsetCommit (key 28, KIP-98, KIP-447): the messages of version 4."""

from kio.schema.txn_offset_commit.v4.request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kio.schema.txn_offset_commit.v4.response import TxnOffsetCommitResponse

__all__ = [
    "TxnOffsetCommitRequest",
    "TxnOffsetCommitRequestPartition",
    "TxnOffsetCommitRequestTopic",
    "TxnOffsetCommitResponse",
]
