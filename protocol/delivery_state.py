"""The delivery states of records, the causes of changes, and the conditions that a state may have. Pure.

States and their ids are those of KIP-932 and KIP-1191. A *condition* is the part of a state that must survive
a restart beside the state itself; a state without one is complete. It is encoded as its kind, an i8, and its
fields, big endian:

    1 letter      topic_id uuid, partition i32, log_end_offset i64, reason i8 (a `Cause`)
    2 due         due_ms i64
    3 pending     producer_id i64, producer_epoch i16, acknowledge type i8, member (UTF-8, the rest)

Control records (version 2) and the state topic hold the same bytes.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Final, NamedTuple
from uuid import UUID

from barnabas.protocol.varint import RecordFormatError


class RecordState(IntEnum):
    """A record's delivery state, with Kafka's ids. ACQUIRED exists only in memory and is never written."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    """On its way to a dead letter (KIP-1191); its condition is a `LetterPlace`."""
    ARCHIVED = 4


class Cause(IntEnum):
    """The cause of a range's state; NONE if it has none, as for skipped records."""

    NONE = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    GAP = 4
    LOCK_EXPIRED = 5
    SESSION_ENDED = 6
    DELIVERY_LIMIT = 7
    LOG_START = 8
    TRANSACTION_ABORTED = 9
    ADMIN = 10
    DEAD_LETTER = 11
    """The dead letter is written. Only in records of version 2."""
    LETTER_FAILED = 12
    """The dead letter could not be written, and the group gives such records up. Only in version 2."""
    EXPIRED = 13
    """The record was older than `share.record.ttl.ms`. Only in version 2."""


def is_final(state: RecordState) -> bool:
    """Whether the record is done with: it is never delivered again, and the start offset may pass it."""
    return state is RecordState.ACKNOWLEDGED or state is RecordState.ARCHIVED


NO_TOPIC_ID: Final = UUID(int=0)


class LetterPlace(NamedTuple):
    """Where the dead letter of a record goes: into this partition, at or behind `log_end_offset`.

    The topic id is `NO_TOPIC_ID` while there is no usable topic. `reason` is the cause of the letter, NONE if
    Apache Kafka has written the state, which does not record it.
    """

    reason: Cause = Cause.NONE
    topic_id: UUID = NO_TOPIC_ID
    partition: int = 0
    log_end_offset: int = 0

    @property
    def is_known(self) -> bool:
        return self.topic_id != NO_TOPIC_ID


class Due(NamedTuple):
    """An available record that must not be delivered before `due_ms`, in ms of wall-clock time.

    A record that was never delivered is *delayed*: its header asked for that (`share.delay.header`).

    A broker that does not know the time would deliver it early, so the time is a part of the state.
    """

    due_ms: int


class PendingAcknowledgement(NamedTuple):
    """The record is Available, and this acknowledgement of it counts when the producer's transaction commits.

    Until the transaction ends, the record is not delivered, and has no other acknowledgement.
    `acknowledge_type` is the number of the wire: 0 gap, 1 accept, 2 release, 3 reject.
    """

    producer_id: int
    producer_epoch: int
    acknowledge_type: int
    member: str


Condition = LetterPlace | Due | PendingAcknowledgement


def fits(state: int, condition: Condition | None) -> bool:
    """Whether a state can have this condition: Archiving needs its place, pending is only Available."""
    if state == RecordState.ARCHIVING:
        return isinstance(condition, LetterPlace)
    return state == RecordState.AVAILABLE or not isinstance(condition, PendingAcknowledgement)


class StateRange(NamedTuple):
    """Neighbouring offsets with equal state, both ends inclusive; `member` is the member that caused it."""

    base_offset: int
    last_offset: int
    state: RecordState
    delivery_count: int
    cause: Cause = Cause.NONE
    member: str | None = None
    condition: Condition | None = None

    @property
    def letter_place(self) -> LetterPlace | None:
        """Where the dead letter goes, if the condition tells."""
        return self.condition if isinstance(self.condition, LetterPlace) else None

    @property
    def is_pending(self) -> bool:
        """Whether an acknowledgement waits for the end of a transaction."""
        return isinstance(self.condition, PendingAcknowledgement)


_LETTER_KIND: Final = 1
_LETTER: Final = struct.Struct(">b16siqb")
_DUE_KIND: Final = 2
_DUE: Final = struct.Struct(">bq")
_PENDING_KIND: Final = 3
_PENDING: Final = struct.Struct(">bqhb")
_PENDING_TYPES: Final = range(4)
_CAUSES: Final = {int(cause): cause for cause in Cause}


def encode_condition(condition: Condition) -> bytes:
    """The bytes of a condition."""
    if isinstance(condition, Due):
        return _DUE.pack(_DUE_KIND, condition.due_ms)
    if isinstance(condition, PendingAcknowledgement):
        producer_id, producer_epoch, acknowledge_type, member = condition
        return _PENDING.pack(_PENDING_KIND, producer_id, producer_epoch, acknowledge_type) + member.encode()
    reason, topic_id, partition, log_end_offset = condition
    return _LETTER.pack(_LETTER_KIND, topic_id.bytes, partition, log_end_offset, reason)


def decode_condition(data: bytes) -> Condition:
    """The condition in these bytes; RecordFormatError if they hold none that this version knows."""
    kind = data[0] if data else None
    if kind == _DUE_KIND and len(data) == _DUE.size:
        _, due_ms = _DUE.unpack(data)
        return Due(due_ms)
    if kind == _LETTER_KIND and len(data) == _LETTER.size:
        return _decode_letter(data)
    if kind == _PENDING_KIND and len(data) >= _PENDING.size:
        return _decode_pending(data)
    raise RecordFormatError(f"A record's state has an unknown condition: {data.hex()}.")


def _decode_letter(data: bytes) -> LetterPlace:
    _, topic_id, partition, log_end_offset, reason = _LETTER.unpack(data)
    if reason not in _CAUSES:
        raise RecordFormatError(f"A dead letter has the unknown reason {reason}.")
    return LetterPlace(_CAUSES[reason], UUID(bytes=topic_id), partition, log_end_offset)


def _decode_pending(data: bytes) -> PendingAcknowledgement:
    _, producer_id, producer_epoch, acknowledge_type = _PENDING.unpack_from(data)
    if acknowledge_type not in _PENDING_TYPES:
        raise RecordFormatError(f"A pending acknowledgement has the unknown type {acknowledge_type}.")
    try:
        member = data[_PENDING.size :].decode()
    except UnicodeDecodeError as error:
        raise RecordFormatError("A pending acknowledgement names no valid member.") from error
    return PendingAcknowledgement(producer_id, producer_epoch, acknowledge_type, member)
