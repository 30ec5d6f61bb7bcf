"""The answer to a request that meets a planned error: the whole request gets one error code.

The responses with encoders of their own are made here, all others from the structure of their messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from uuid import UUID

from barnabas.broker.network.handler import RequestContext, Response
from barnabas.protocol.codec import RequestBody, shape_version
from barnabas.protocol.decode.fetch import FetchBody
from barnabas.protocol.decode.produce import ProduceBody, ProduceTopic
from barnabas.protocol.decode.share_acknowledge import ShareAcknowledgeBody
from barnabas.protocol.decode.share_fetch import ShareFetchBody
from barnabas.protocol.encode.fetch import encode_fetch_response
from barnabas.protocol.encode.produce import (
    ProducePartitionResult,
    ProduceTopicResult,
    encode_produce_response,
)
from barnabas.protocol.encode.share_acknowledge import encode_share_acknowledge_response
from barnabas.protocol.encode.share_fetch import encode_share_fetch_response
from barnabas.protocol.error_response import error_response
from barnabas.protocol.errors import ErrorCode, FrameError
from barnabas.protocol.kio_messages import message_class
from barnabas.runtime.response_budget import EncodedBody

if TYPE_CHECKING:
    from barnabas.broker.node.broker import Broker

MESSAGE: Final = "A fault that a test has planned."
_NO_ID: Final = UUID(int=0)
_NO_SESSION: Final = 0
_NO_OFFSET: Final = -1


def error_answer(broker: Broker, context: RequestContext, request: RequestBody, code: ErrorCode) -> Response:
    """The response to `request` with `code`. A request without a response gets its connection closed
    (FrameError), as in Kafka.
    """
    version = context.api_version
    match request:
        case ProduceBody():
            if request.acks == 0:
                raise FrameError("A fault that a test has planned refuses a request without a response.")
            topics = [_produced(broker, topic, code) for topic in request.topics]
            return EncodedBody(encode_produce_response(version, topics))
        case FetchBody():
            return EncodedBody(encode_fetch_response(version, code.value, _NO_SESSION, ()))
        case ShareFetchBody():
            return EncodedBody(encode_share_fetch_response(version, code.value, MESSAGE, 0, ()))
        case ShareAcknowledgeBody():
            return EncodedBody(encode_share_acknowledge_response(version, code.value, MESSAGE, 0, ()))
        case _:
            shape = shape_version(context.api_key, version)
            return error_response(message_class(context.api_key, shape, "response"), request, code)


def _produced(broker: Broker, topic: ProduceTopic, code: ErrorCode) -> ProduceTopicResult:
    partitions = [
        ProducePartitionResult(partition.partition_index, code.value, _NO_OFFSET, error_message=MESSAGE)
        for partition in topic.partitions
    ]
    return ProduceTopicResult(topic.name or "", topic.topic_id or _NO_ID, partitions)
