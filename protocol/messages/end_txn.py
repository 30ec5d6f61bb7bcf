"""EndTxn (key 26, KIP-98): the messages of version 4.

Newer ones bump the producer's epoch (KIP-890).
"""

from kio.schema.end_txn.v4.request import EndTxnRequest
from kio.schema.end_txn.v4.response import EndTxnResponse

__all__ = [
    "EndTxnRequest",
    "EndTxnResponse",
]
