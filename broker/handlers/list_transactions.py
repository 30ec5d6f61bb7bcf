"""ListTransactions (key 66, versions 0 to 2; KIP-664, KIP-994, KIP-1152): the transactions that pass filters.

The response names the unknown states of the filter. A pattern must match a whole transactional id; one that
is not a regular expression is INVALID_REGULAR_EXPRESSION.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kio.schema.list_transactions.v2.request import ListTransactionsRequest
from kio.schema.list_transactions.v2.response import ListTransactionsResponse, TransactionState

from barnabas.coordinator.consumer.regular_expression import RegexError, RegularExpression
from barnabas.coordinator.transaction.listing import TransactionFilter, unknown_states
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.primitive import ProducerId, TransactionalId, milliseconds

if TYPE_CHECKING:
    from barnabas.broker.internal_topics.transaction_state_topic import TransactionStateTopic
    from barnabas.broker.network.handler import Reply, RequestContext


class Parts(NamedTuple):
    transactions: TransactionStateTopic


def handle_list_transactions(
    parts: Parts, context: RequestContext, request: ListTransactionsRequest
) -> Reply:
    pattern = request.transactional_id_pattern
    try:
        wanted = TransactionFilter(
            frozenset(request.state_filters),
            frozenset(request.producer_id_filters),
            request.duration_filter if request.duration_filter >= 0 else None,
            RegularExpression(pattern).matches if pattern else None,
        )
        found = parts.transactions.coordinator.list_transactions(wanted)
    except RegexError:
        return _refused(ErrorCode.invalid_regular_expression)
    except ApiError as error:
        return _refused(error.code)
    return ListTransactionsResponse(
        throttle_time=milliseconds(0),
        error_code=ErrorCode.none,
        unknown_state_filters=tuple(unknown_states(dict.fromkeys(request.state_filters))),
        transaction_states=tuple(
            TransactionState(
                transactional_id=TransactionalId(transaction.transactional_id),
                producer_id=ProducerId(transaction.producer_id),
                transaction_state=transaction.state,
            )
            for transaction in found
        ),
    )


def _refused(error_code: ErrorCode) -> ListTransactionsResponse:
    return ListTransactionsResponse(
        throttle_time=milliseconds(0), error_code=error_code, unknown_state_filters=(), transaction_states=()
    )
