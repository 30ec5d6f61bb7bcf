"""InitProducerId (key 22): an id for an idempotent producer (KIP-98, KIP-360, KIP-730).

- Without a transactional id each request gets a fresh id with epoch 0, also one that brings the id and epoch
  it has: as in Kafka, a fresh id serves a producer that lost its place as well as a raised epoch would.
- Only one of producer id and epoch given: INVALID_REQUEST.
- Transactions are not served: an empty transactional id is INVALID_REQUEST, any other NOT_COORDINATOR, since
  no broker coordinates it. FindCoordinator says the same before a producer comes this far.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.replies import respond_when_done
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.protocol.primitive import ProducerId, i16, milliseconds

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.dispatch import Reply, RequestContext

_NONE = -1


def handle_init_producer_id(broker: Broker, context: RequestContext, request: InitProducerIdRequest) -> Reply:
    if request.transactional_id is not None:
        empty = request.transactional_id == ""
        return _refused(ErrorCode.invalid_request if empty else ErrorCode.not_coordinator)
    if (request.producer_id == _NONE) != (request.producer_epoch == _NONE):
        return _refused(ErrorCode.invalid_request)
    return respond_when_done(broker.producer_ids.next_id(), _given, lambda error: _refused(error.code))


def _given(producer_id: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        throttle_time=milliseconds(0),
        error_code=ErrorCode.none,
        producer_id=ProducerId(producer_id),
        producer_epoch=i16(0),
    )


def _refused(error_code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        throttle_time=milliseconds(0),
        error_code=error_code,
        producer_id=ProducerId(_NONE),
        producer_epoch=i16(_NONE),
    )
