"""ListTransactions (key 66, KIP-664, KIP-994): the messages of version 1."""

from kio.schema.list_transactions.v1.request import ListTransactionsRequest
from kio.schema.list_transactions.v1.response import ListTransactionsResponse

__all__ = [
    "ListTransactionsRequest",
    "ListTransactionsResponse",
]
