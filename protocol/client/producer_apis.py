"""The client's side of the APIs that produce records, with or without transactions (KIP-98).

Produce and EndTxn end at the last version before KIP-890's second part. In later versions the broker adds
partitions to a transaction by itself, and raises the producer's epoch with each transaction. Then only the
process that began a transaction can end it. A transaction that one process prepares and another ends needs
the older protocol, which Kafka still serves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kio.schema.add_offsets_to_txn.v4.request import AddOffsetsToTxnRequest
from kio.schema.add_offsets_to_txn.v4.response import AddOffsetsToTxnResponse
from kio.schema.add_partitions_to_txn.v3.request import AddPartitionsToTxnRequest
from kio.schema.add_partitions_to_txn.v3.response import AddPartitionsToTxnResponse
from kio.schema.end_txn.v5.request import EndTxnRequest
from kio.schema.end_txn.v5.response import EndTxnResponse
from kio.schema.init_producer_id.v5.request import InitProducerIdRequest
from kio.schema.init_producer_id.v5.response import InitProducerIdResponse
from kio.schema.list_transactions.v2.request import ListTransactionsRequest
from kio.schema.list_transactions.v2.response import ListTransactionsResponse
from kio.schema.txn_offset_commit.v5.request import TxnOffsetCommitRequest
from kio.schema.txn_offset_commit.v5.response import TxnOffsetCommitResponse

from barnabas.protocol.api import ApiKey
from barnabas.protocol.client.api import ClientApi, kio_api
from barnabas.protocol.client.produce_request import encode_produce_request
from barnabas.protocol.client.produce_response import ProduceReply, decode_produce_response
from barnabas.protocol.client.transaction_states import (
    TransactionState,
    decode_describe_transactions_response,
    encode_describe_transactions_request,
)
from barnabas.protocol.decode.produce import ProduceBody

PRODUCE: Final[ClientApi[ProduceBody, ProduceReply]] = ClientApi(
    ApiKey.PRODUCE, 9, 11, encode_produce_request, decode_produce_response
)
INIT_PRODUCER_ID: Final = kio_api(
    ApiKey.INIT_PRODUCER_ID, range(4, 6), InitProducerIdRequest, InitProducerIdResponse
)
ADD_PARTITIONS_TO_TXN: Final = kio_api(
    ApiKey.ADD_PARTITIONS_TO_TXN, range(3, 4), AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
)
ADD_OFFSETS_TO_TXN: Final = kio_api(
    ApiKey.ADD_OFFSETS_TO_TXN, range(3, 4), AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
)
TXN_OFFSET_COMMIT: Final = kio_api(
    ApiKey.TXN_OFFSET_COMMIT, range(3, 5), TxnOffsetCommitRequest, TxnOffsetCommitResponse
)
END_TXN: Final = kio_api(ApiKey.END_TXN, range(3, 5), EndTxnRequest, EndTxnResponse)
DESCRIBE_TRANSACTIONS: Final[ClientApi[Sequence[str], list[TransactionState]]] = ClientApi(
    ApiKey.DESCRIBE_TRANSACTIONS,
    0,
    0,
    encode_describe_transactions_request,
    decode_describe_transactions_response,
)
LIST_TRANSACTIONS: Final = kio_api(
    ApiKey.LIST_TRANSACTIONS, range(2), ListTransactionsRequest, ListTransactionsResponse
)
