"""OffsetFetch (key 9, KIP-447, KIP-709, KIP-848): the messages of versions 7, 9 and 10.

`Single` is versions 1 to 7, one group; `ByName` is 8 and 9, several groups with their topics by name; `ById`
is 10.
"""

from kio.schema.offset_fetch.v7.request import OffsetFetchRequest as OffsetFetchRequestSingle
from kio.schema.offset_fetch.v7.response import OffsetFetchResponse as OffsetFetchResponseSingle
from kio.schema.offset_fetch.v7.response import OffsetFetchResponsePartition as FetchedPartitionSingle
from kio.schema.offset_fetch.v7.response import OffsetFetchResponseTopic as FetchedTopicSingle
from kio.schema.offset_fetch.v9.request import OffsetFetchRequest as OffsetFetchRequestByName
from kio.schema.offset_fetch.v9.request import OffsetFetchRequestGroup as WantedGroupByName
from kio.schema.offset_fetch.v9.response import OffsetFetchResponse as OffsetFetchResponseByName
from kio.schema.offset_fetch.v9.response import OffsetFetchResponseGroup as FetchedGroupByName
from kio.schema.offset_fetch.v9.response import OffsetFetchResponsePartitions as FetchedPartitionByName
from kio.schema.offset_fetch.v9.response import OffsetFetchResponseTopics as FetchedTopicByName
from kio.schema.offset_fetch.v10.request import OffsetFetchRequest as OffsetFetchRequestById
from kio.schema.offset_fetch.v10.request import OffsetFetchRequestGroup as WantedGroupById
from kio.schema.offset_fetch.v10.response import OffsetFetchResponse as OffsetFetchResponseById
from kio.schema.offset_fetch.v10.response import OffsetFetchResponseGroup as FetchedGroupById
from kio.schema.offset_fetch.v10.response import OffsetFetchResponsePartitions as FetchedPartitionById
from kio.schema.offset_fetch.v10.response import OffsetFetchResponseTopics as FetchedTopicById

__all__ = [
    "FetchedGroupById",
    "FetchedGroupByName",
    "FetchedPartitionById",
    "FetchedPartitionByName",
    "FetchedPartitionSingle",
    "FetchedTopicById",
    "FetchedTopicByName",
    "FetchedTopicSingle",
    "OffsetFetchRequestById",
    "OffsetFetchRequestByName",
    "OffsetFetchRequestSingle",
    "OffsetFetchResponseById",
    "OffsetFetchResponseByName",
    "OffsetFetchResponseSingle",
    "WantedGroupById",
    "WantedGroupByName",
]
