"""ListTransactions (key 66, KIP-664, KIP-994, KIP-1152): the messages of version 2."""

from kio.schema.list_transactions.v2.request import ListTransactionsRequest
from kio.schema.list_transactions.v2.response import ListTransactionsResponse, TransactionState

__all__ = [
    "ListTransactionsRequest",
    "ListTransactionsResponse",
    "TransactionState",
]
