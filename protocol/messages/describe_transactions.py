"""DescribeTransactions (key 65, KIP-664): the request of version 0; the response is encoded without kio."""

from kio.schema.describe_transactions.v0.request import DescribeTransactionsRequest

__all__ = ["DescribeTransactionsRequest"]
