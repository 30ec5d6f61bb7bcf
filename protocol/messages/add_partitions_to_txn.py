"""AddPartitionsToTxn (key 24, KIP-98, KIP-890): the messages of versions 3 and 5.

Versions up to 3 are for clients, which add partitions of one transaction; `Batch` is versions 4 and 5, by
which brokers ask, for several transactions, and may only want to know.
"""

from kio.schema.add_partitions_to_txn.v3.request import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from kio.schema.add_partitions_to_txn.v3.response import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from kio.schema.add_partitions_to_txn.v5.request import (
    AddPartitionsToTxnRequest as AddPartitionsToTxnRequestBatch,
)
from kio.schema.add_partitions_to_txn.v5.request import AddPartitionsToTxnTransaction
from kio.schema.add_partitions_to_txn.v5.response import (
    AddPartitionsToTxnPartitionResult as PartitionResultOfBatch,
)
from kio.schema.add_partitions_to_txn.v5.response import (
    AddPartitionsToTxnResponse as AddPartitionsToTxnResponseBatch,
)
from kio.schema.add_partitions_to_txn.v5.response import AddPartitionsToTxnResult
from kio.schema.add_partitions_to_txn.v5.response import AddPartitionsToTxnTopicResult as TopicResultOfBatch

__all__ = [
    "AddPartitionsToTxnPartitionResult",
    "AddPartitionsToTxnRequest",
    "AddPartitionsToTxnRequestBatch",
    "AddPartitionsToTxnResponse",
    "AddPartitionsToTxnResponseBatch",
    "AddPartitionsToTxnResult",
    "AddPartitionsToTxnTopic",
    "AddPartitionsToTxnTopicResult",
    "AddPartitionsToTxnTransaction",
    "PartitionResultOfBatch",
    "TopicResultOfBatch",
]
