"""InitProducerId (key 22, versions 0 to 5; KIP-98, KIP-360, KIP-730): gives a producer its id and epoch.

- Without a transactional id each request gets a new id with epoch 0, even if the producer has one. As in
  Kafka, a new id serves a producer that has lost its state as well as a higher epoch.
- With a transactional id the previous producer is fenced. CONCURRENT_TRANSACTIONS while its open transaction
  is aborted.
- A producer id and epoch of -1 stand for a producer without one; versions before 3 lack both fields. Only one
  of them is INVALID_REQUEST.
- Up to version 3 a fenced producer gets INVALID_PRODUCER_EPOCH.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kio.schema.init_producer_id.v5.request import InitProducerIdRequest
from kio.schema.init_producer_id.v5.response import InitProducerIdResponse

from barnabas.broker.handlers.common.fencing import fenced_code
from barnabas.broker.network.replies import respond_when_done
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import ProducerIdentity
from barnabas.protocol.primitive import ProducerId, i16, milliseconds, to_milliseconds

if TYPE_CHECKING:
    from barnabas.broker.internal_topics.transaction_state_topic import TransactionStateTopic
    from barnabas.broker.network.handler import Reply, RequestContext
    from barnabas.coordinator.metadata.producer_ids import ProducerIds

_NONE = -1
_KNOWS_FENCED_FROM = 4


class Parts(NamedTuple):
    producer_ids: ProducerIds
    transactions: TransactionStateTopic


def handle_init_producer_id(parts: Parts, context: RequestContext, request: InitProducerIdRequest) -> Reply:
    if (request.producer_id == _NONE) != (request.producer_epoch == _NONE):
        return _refused(ErrorCode.invalid_request)
    if request.transactional_id is None:
        return respond_when_done(
            parts.producer_ids.next_id(),
            lambda producer_id: _given(ProducerIdentity(producer_id, 0)),
            lambda error: _refused(error.code),
        )
    has_one = request.producer_id != _NONE
    expected = ProducerIdentity(request.producer_id, request.producer_epoch) if has_one else None
    return respond_when_done(
        parts.transactions.coordinator.initialise(
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
