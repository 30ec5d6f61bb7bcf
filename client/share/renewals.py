"""The choice of locks to renew, and the interpretation of refused renewals (KIP-1222). Pure.

`ShareLeader` checks the locks at intervals; a check renews each lock that is more than half over. A refusal
means:

    NOT_LEADER_OR_FOLLOWER, UNKNOWN_TOPIC_ID, ...    all locks of the partition are lost, see `Ledger`
    INVALID_RECORD_STATE for several records         one lock had ended, so halves of the lot are tried
    INVALID_RECORD_STATE for one record              its lock had ended, or the group has renewal switched off
                                                     (share.renew.acknowledge.enable); the code is the same
    any other                                        nothing, so the next check tries again

A record that was refused alone is not tried again: its reader keeps it until the lock ends. After
`RENEWALS_REFUSED_MAX` such refusals without a grant, the client assumes that the group has renewal switched
off. It then stops halving, and each check tries one record, so that it notices in time for the other records
when renewal is switched on. The first grant, or a new session, ends this assumption.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from barnabas.client.share.held_record import HeldRecord, RecordState
from barnabas.protocol.errors import ErrorCode

RENEWALS_REFUSED_MAX: Final = 3
"""Consecutive refusals of single records that are attributed to the group and not to their locks."""


class Renewals:
    """The renewals of one share session, and of the sessions that replace it."""

    def __init__(self) -> None:
        self._refused_count = 0

    @property
    def are_disabled(self) -> bool:
        """Whether the refusals so far mean that the group has renewal switched off."""
        return self._refused_count >= RENEWALS_REFUSED_MAX

    def due(
        self, records: Iterable[HeldRecord], now_ms: int, lock_ms: int, hold_ms_max: int
    ) -> Iterator[HeldRecord]:
        """The records to renew now; a record is not renewed later than `hold_ms_max` after its delivery."""
        due = (
            record
            for record in records
            if record.state is RecordState.HELD
            and now_ms < record.lock_deadline_ms <= now_ms + lock_ms // 2
            and now_ms - record.acquired_at_ms < hold_ms_max
            and record.renewal is None
        )
        return islice(due, 1) if self.are_disabled else due

    def grant(self, records: Iterable[HeldRecord], lock_deadline_ms: int) -> None:
        """The broker has renewed the locks of these records."""
        self._refused_count = 0
        for record in records:
            record.lock_deadline_ms = lock_deadline_ms
            _answer(record, ErrorCode.none, None)
            record.renewal = None

    def refuse(self, records: Iterable[HeldRecord], code: ErrorCode, message: str | None) -> None:
        """The locks of these records are unchanged."""
        for record in records:
            _answer(record, code, message)
            record.renewal = None

    def refuse_alone(self, record: HeldRecord, message: str | None) -> None:
        """The lock of this record had ended, or the group has renewal switched off."""
        self._refused_count += 1
        _answer(record, ErrorCode.invalid_record_state, message)

    def begin_anew(self) -> None:
        """Refusals of the last session do not apply to the next one."""
        self._refused_count = 0


def _answer(record: HeldRecord, code: ErrorCode, message: str | None) -> None:
    assert record.renewal is not None, record
    record.renewal.code, record.renewal.message = code, message
