"""EndTxn (key 26, versions 0 to 5; KIP-98, KIP-890): commits or aborts a transaction.

- The response waits for the markers, so a consumer of committed records then finds all of them. Kafka
  responds when the end is decided. Barnabas does the same only if a log cannot be written immediately.
- Version 5 is transaction.version 2: the producer's epoch is raised, and the response has the new id and
  epoch.
- Up to version 1 a fenced producer gets INVALID_PRODUCER_EPOCH.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kio.schema.end_txn.v5.request import EndTxnRequest
from kio.schema.end_txn.v5.response import EndTxnResponse

from barnabas.broker.handlers.common.fencing import fenced_code
from barnabas.broker.network.replies import respond_when_done
from barnabas.coordinator.transaction.ending import EndRequest
from barnabas.coordinator.transaction.transaction import EPOCH_RAISED_FROM
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import ProducerIdentity
from barnabas.protocol.primitive import ProducerId, i16, milliseconds

if TYPE_CHECKING:
    from barnabas.broker.internal_topics.transaction_state_topic import TransactionStateTopic
    from barnabas.broker.network.handler import Reply, RequestContext

_KNOWS_FENCED_FROM, _RAISES_EPOCH_FROM = 2, 5
_NO_ID = ProducerIdentity(-1, -1)


class Parts(NamedTuple):
    transactions: TransactionStateTopic


def handle_end_txn(parts: Parts, context: RequestContext, request: EndTxnRequest) -> Reply:
    raises_epoch = context.api_version >= _RAISES_EPOCH_FROM
    end = EndRequest(
        request.transactional_id,
        ProducerIdentity(request.producer_id, request.producer_epoch),
        request.committed,
        EPOCH_RAISED_FROM if raises_epoch else 0,
    )
    return respond_when_done(
        parts.transactions.coordinator.end(end),
        lambda producer: _response(ErrorCode.none, producer if raises_epoch else _NO_ID),
        lambda error: _response(fenced_code(error.code, context, known_from=_KNOWS_FENCED_FROM), _NO_ID),
    )


def _response(error_code: ErrorCode, producer: ProducerIdentity) -> EndTxnResponse:
    return EndTxnResponse(
        throttle_time=milliseconds(0),
        error_code=error_code,
        producer_id=ProducerId(producer.producer_id),
        producer_epoch=i16(producer.producer_epoch),
    )
