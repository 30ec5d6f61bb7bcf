"""OffsetCommit (key 8, KIP-211, KIP-320, KIP-848): the messages of versions 9 and 10.

`ByName` is versions 2 to 9, `ById` is 10. The retention time that versions 2 to 4 may give is not carried
over: the broker's own holds for all.
"""

from kio.schema.offset_commit.v9.request import OffsetCommitRequest as OffsetCommitRequestByName
from kio.schema.offset_commit.v9.request import OffsetCommitRequestPartition as OffsetToCommitByName
from kio.schema.offset_commit.v9.request import OffsetCommitRequestTopic as TopicToCommitByName
from kio.schema.offset_commit.v9.response import OffsetCommitResponse as OffsetCommitResponseByName
from kio.schema.offset_commit.v9.response import OffsetCommitResponsePartition as CommittedPartitionByName
from kio.schema.offset_commit.v9.response import OffsetCommitResponseTopic as CommittedTopicByName
from kio.schema.offset_commit.v10.request import OffsetCommitRequest as OffsetCommitRequestById
from kio.schema.offset_commit.v10.response import OffsetCommitResponse as OffsetCommitResponseById
from kio.schema.offset_commit.v10.response import OffsetCommitResponsePartition as CommittedPartitionById
from kio.schema.offset_commit.v10.response import OffsetCommitResponseTopic as CommittedTopicById

__all__ = [
    "CommittedPartitionById",
    "CommittedPartitionByName",
    "CommittedTopicById",
    "CommittedTopicByName",
    "OffsetCommitRequestById",
    "OffsetCommitRequestByName",
    "OffsetCommitResponseById",
    "OffsetCommitResponseByName",
    "OffsetToCommitByName",
    "TopicToCommitByName",
]
