"""EndTxn (key 26, KIP-98, KIP-890): the messages of version 5.

From that version on the answer has the producer's new id and epoch.
"""

from kio.schema.end_txn.v5.request import EndTxnRequest
from kio.schema.end_txn.v5.response import EndTxnResponse

__all__ = [
    "EndTxnRequest",
    "EndTxnResponse",
]
