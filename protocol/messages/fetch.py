"""Fetch requests (key 1, KIP-98, KIP-227, KIP-516): the messages of versions 12 and 18.

`ByName` is versions 4 to 12, `ById` is 13 to 18. The replica id of versions 13 and 14 is not carried over:
those that follow the metadata log speak newer ones.
"""

from kio.schema.fetch.v12.request import FetchPartition as FetchPartitionByName
from kio.schema.fetch.v12.request import FetchRequest as FetchRequestByName
from kio.schema.fetch.v12.request import FetchTopic as FetchTopicByName
from kio.schema.fetch.v12.request import ForgottenTopic as ForgottenTopicByName
from kio.schema.fetch.v18.request import FetchPartition as FetchPartitionById
from kio.schema.fetch.v18.request import FetchRequest as FetchRequestById
from kio.schema.fetch.v18.request import FetchTopic as FetchTopicById
from kio.schema.fetch.v18.request import ForgottenTopic as ForgottenTopicById
from kio.schema.fetch.v18.request import ReplicaState

__all__ = [
    "FetchPartitionById",
    "FetchPartitionByName",
    "FetchRequestById",
    "FetchRequestByName",
    "FetchTopicById",
    "FetchTopicByName",
    "ForgottenTopicById",
    "ForgottenTopicByName",
    "ReplicaState",
]
