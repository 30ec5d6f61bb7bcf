"""kio's Fetch messages, versions 13 to 18, with the tagged fields of a fetch by hash range."""

from __future__ import annotations

import dataclasses
import types
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

from kio.static.primitive import i64

from barnabas.protocol.api import ApiKey
from barnabas.protocol.kio_messages import message_class

RANGE_VERSIONS = range(13, 19)
NO_OFFSET = -1


class RangeFetch(NamedTuple):
    """The classes of one version, named as in kio."""

    request: Any
    topic: Any
    partition: Any
    response: Any
    topic_response: Any
    partition_data: Any


@cache
def range_fetch(version: int) -> RangeFetch:
    """`hash_range` is a field of a request's partition, `looked_until_offset` of a response's."""
    request_class: Any = message_class(ApiKey.FETCH, version, "request")
    response_class: Any = message_class(ApiKey.FETCH, version, "response")
    asked, answered = import_module(request_class.__module__), import_module(response_class.__module__)
    partition = _extended(asked.FetchPartition, "hash_range", bytes | None, _tagged("bytes", None))
    topic = _extended(asked.FetchTopic, "partitions", _array_of(partition))
    request = _extended(request_class, "topics", _array_of(topic))
    data = _extended(answered.PartitionData, "looked_until_offset", i64, _tagged("int64", i64(NO_OFFSET)))
    topic_response = _extended(answered.FetchableTopicResponse, "partitions", _array_of(data))
    response = _extended(response_class, "responses", _array_of(topic_response))
    return RangeFetch(request, topic, partition, response, topic_response, data)


def _array_of(entity_type: Any) -> Any:
    return types.GenericAlias(tuple, (entity_type, ...))


def _tagged(kafka_type: str, default: Any) -> Any:
    return dataclasses.field(metadata={"kafka_type": kafka_type, "tag": 10_000}, default=default)


def _extended(base: Any, name: str, annotation: Any, field: Any = None) -> Any:
    """A subclass with one more field, or with another type of a field."""
    entry = (name, annotation, field or dataclasses.field())
    return dataclasses.make_dataclass(base.__name__, [entry], bases=(base,), frozen=True, kw_only=True)
