"""EndTxn: whether a transaction may be committed or aborted, or was already (KIP-98, KIP-890).

With transaction.version 2 a repeated request is recognised by its epoch, which is the one before the epoch
that the end gave to the producer. With lower versions the state alone decides. A producer may also abort
without an open transaction: a producer that is unsure aborts, and gets a new epoch.

    version 2        abort again   abort now   commit again   commit now        (again: with the epoch before)
    Empty            fenced        aborts      fenced         INVALID_TXN_STATE
    CompleteAbort    as then       aborts      invalid        invalid
    CompleteCommit   invalid       aborts      as then        invalid

Pure.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.coordinator.transaction.transaction import (
    EPOCH_RAISED_FROM,
    NO_PRODUCER_ID,
    PREPARED,
    Transaction,
    TransactionState,
    is_exhausted,
    prepared,
)
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.identity import ProducerIdentity

_COMPLETE = {
    TransactionState.COMPLETE_COMMIT: True,
    TransactionState.COMPLETE_ABORT: False,
}
"""Whether it was committed."""


class EndRequest(NamedTuple):
    """EndTxn; `client_version` is the level of `transaction.version` that the client
    speaks.
    """

    transactional_id: str
    producer: ProducerIdentity
    commit: bool
    client_version: int


def may_end(transaction: Transaction | None, request: EndRequest) -> bool:
    """True if the transaction is to be ended now, False if it has already ended in the same way.

    INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS while the same end is carried out,
    INVALID_TXN_STATE.
    """
    if request.client_version >= EPOCH_RAISED_FROM:
        return _may_end_raising(transaction, request)
    known = _of_producer_id(transaction, request.producer)
    if request.producer.producer_epoch != known.producer_epoch:
        raise _fenced(known)
    if known.state is TransactionState.ONGOING:
        return True
    if _COMPLETE.get(known.state) is request.commit:
        return False
    raise _refusal(known, request)


def needs_next_producer_id(transaction: Transaction, client_version: int) -> bool:
    """Whether the producer id has no epoch left for its producer after this end."""
    return client_version >= EPOCH_RAISED_FROM and transaction.is_exhausted


def ended(
    transaction: Transaction, request: EndRequest, wall_ms: int, *, next_producer_id: int | None = None
) -> Transaction:
    """The decided transaction."""
    return prepared(
        transaction,
        commit=request.commit,
        client_version=request.client_version,
        next_producer_id=NO_PRODUCER_ID if next_producer_id is None else next_producer_id,
        wall_ms=wall_ms,
    )


def _may_end_raising(transaction: Transaction | None, request: EndRequest) -> bool:
    if transaction is not None and _is_again_after_rotation(transaction, request.producer):
        known, is_again = transaction, True
        if known.state not in _COMPLETE:
            raise _fenced(known)
    else:
        known = _of_producer_id(transaction, request.producer)
        is_again = _is_again(known, request.producer)
    if known.state is TransactionState.ONGOING:
        return True
    if known.state in _COMPLETE and is_again:
        if _COMPLETE[known.state] is request.commit:
            return False
        raise _refusal(known, request)
    if known.state in PREPARED or request.commit:
        raise _refusal(known, request)
    # No transaction is open, and the producer knows of no write: the abort only raises its epoch.
    return True


def _is_again(transaction: Transaction, producer: ProducerIdentity) -> bool:
    """Whether the request is a repetition whose end was decided; PRODUCER_FENCED if it is neither that, nor
    from the newest producer.
    """
    is_again = transaction.producer_epoch == producer.producer_epoch + 1
    may_be_again = transaction.state in PREPARED or transaction.state in _COMPLETE
    may_be_now = transaction.state not in PREPARED
    is_now = transaction.producer_epoch == producer.producer_epoch
    if (is_again and may_be_again) or (is_now and may_be_now):
        return is_again
    raise _fenced(transaction)


def _is_again_after_rotation(transaction: Transaction, producer: ProducerIdentity) -> bool:
    """Whether the repeated end has given the producer a new id."""
    return (
        transaction.previous_producer_id == producer.producer_id != transaction.producer_id
        and is_exhausted(producer.producer_epoch)
        and transaction.producer_epoch == 0
    )


def _of_producer_id(transaction: Transaction | None, producer: ProducerIdentity) -> Transaction:
    if transaction is None or transaction.producer_id != producer.producer_id:
        message = "The transactional id has another producer id, or none."
        raise ApiError(ErrorCode.invalid_producer_id_mapping, message)
    return transaction


def _fenced(transaction: Transaction) -> ApiError:
    return ApiError(ErrorCode.producer_fenced, f"The producer's epoch is {transaction.producer_epoch} now.")


def _refusal(transaction: Transaction, request: EndRequest) -> ApiError:
    if transaction.state in PREPARED and transaction.commits is request.commit:
        return ApiError(ErrorCode.concurrent_transactions, "The transaction is being completed.")
    wish = "commit" if request.commit else "abort"
    return ApiError(
        ErrorCode.invalid_txn_state, f"There is nothing to {wish} in state {transaction.state.label}."
    )
