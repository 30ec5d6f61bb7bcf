"""DeleteTopics (key 20, KIP-4, KIP-516): the messages of versions 5 and 6.

`ByName` is versions 1 to 5, `ById` is 6, where each topic is given by its name or by its id.
"""

from kio.schema.delete_topics.v5.request import DeleteTopicsRequest as DeleteTopicsRequestByName
from kio.schema.delete_topics.v5.response import DeletableTopicResult as DeletableTopicResultByName
from kio.schema.delete_topics.v5.response import DeleteTopicsResponse as DeleteTopicsResponseByName
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest as DeleteTopicsRequestById
from kio.schema.delete_topics.v6.request import DeleteTopicState as DeleteTopicStateById
from kio.schema.delete_topics.v6.response import DeletableTopicResult as DeletableTopicResultById
from kio.schema.delete_topics.v6.response import DeleteTopicsResponse as DeleteTopicsResponseById

__all__ = [
    "DeletableTopicResultById",
    "DeletableTopicResultByName",
    "DeleteTopicStateById",
    "DeleteTopicsRequestById",
    "DeleteTopicsRequestByName",
    "DeleteTopicsResponseById",
    "DeleteTopicsResponseByName",
]
