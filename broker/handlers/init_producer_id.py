"""InitProducerId (key 22): an id for an idempotent producer, or the transactional id's for one with
transactions (KIP-98, KIP-360, KIP-730).

- Without a transactional id each request gets a fresh id with epoch 0, also one that brings the id and epoch
  it has: as in Kafka, a fresh id serves a producer that lost its place as well as a raised epoch would.
- With one, whoever had it before is fenced; while the transaction that is open gets aborted,
  CONCURRENT_TRANSACTIONS.
- Only one of producer id and epoch given: INVALID_REQUEST.
- Before version 4 a producer that was fenced is told INVALID_PRODUCER_EPOCH.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kio.schema.init_producer_id.v5.request import InitProducerIdRequest
from kio.schema.init_producer_id.v5.response import InitProducerIdResponse

from barnabas.broker.handlers.fencing import fenced_code
from barnabas.broker.network.replies import respond_when_done
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import ProducerIdentity
from barnabas.protocol.primitive import ProducerId, i16, milliseconds, to_milliseconds

if TYPE_CHECKING:
    from barnabas.broker.network.handler import Reply, RequestContext
    from barnabas.broker.node.broker import Broker

_NONE = -1
_KNOWS_FENCED_FROM = 4


def handle_init_producer_id(broker: Broker, context: RequestContext, request: InitProducerIdRequest) -> Reply:
    if (request.producer_id == _NONE) != (request.producer_epoch == _NONE):
        return _refused(ErrorCode.invalid_request)
    if request.transactional_id is None:
        return respond_when_done(
            broker.producer_ids.next_id(),
            lambda producer_id: _given(ProducerIdentity(producer_id, 0)),
            lambda error: _refused(error.code),
        )
    has_one = request.producer_id != _NONE
    expected = ProducerIdentity(request.producer_id, request.producer_epoch) if has_one else None
    return respond_when_done(
        broker.transactions.coordinator.initialise(
            request.transactional_id, to_milliseconds(request.transaction_timeout), expected
        ),
        _given,
        lambda error: _refused(fenced_code(error.code, context, known_from=_KNOWS_FENCED_FROM)),
    )


def _given(producer: ProducerIdentity) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        throttle_time=milliseconds(0),
        error_code=ErrorCode.none,
        producer_id=ProducerId(producer.producer_id),
        producer_epoch=i16(producer.producer_epoch),
    )


def _refused(error_code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        throttle_time=milliseconds(0),
        error_code=error_code,
        producer_id=ProducerId(_NONE),
        producer_epoch=i16(_NONE),
    )
