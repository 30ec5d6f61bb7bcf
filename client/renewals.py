"""Which locks are renewed, and what the broker's refusals say (pure, KIP-1222).

A lock is renewed once half of it is over, at one of the looks that `ShareLeader` takes at the locks. What is
refused says of them:

    NOT_LEADER_OR_FOLLOWER, UNKNOWN_TOPIC_ID, ...    the partition's are all lost, see `Ledger`
    INVALID_RECORD_STATE for several records         one had ended, so they are tried again in halves
    INVALID_RECORD_STATE for one record              it had ended, or the group has renewals switched off
                                                     (share.renew.acknowledge.enable); which, nobody can tell
    any other                                        nothing, so the next look tries again

A record that was refused alone isn't tried again: it is its reader's until its lock is over. After
`RENEWALS_REFUSED_MAX` of those without a grant, renewals are taken to be switched off. Nothing is halved any
more then, and each look tries one record, so that it is found out in time for the others when they are
switched on. The first grant ends this, and so does a new session.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from barnabas.client.held_record import HeldRecord, RecordState
from barnabas.protocol.errors import ErrorCode

RENEWALS_REFUSED_MAX: Final = 3
"""Records refused alone, in a row, that are put down to the group and not to their locks."""


class Renewals:
    """The renewals of one share session, and of its successors."""

    def __init__(self) -> None:
        self._refused_count = 0

    @property
    def are_switched_off(self) -> bool:
        """Whether the group renews no locks, as far as its refusals tell."""
        return self._refused_count >= RENEWALS_REFUSED_MAX

    def due(
        self, records: Iterable[HeldRecord], now_ms: int, lock_ms: int, hold_ms_max: int
    ) -> Iterator[HeldRecord]:
        """Those to be renewed now; `hold_ms_max` after they were acquired there is an end to it."""
        due = (
            record
            for record in records
            if record.state is RecordState.HELD
            and now_ms < record.lock_deadline_ms <= now_ms + lock_ms // 2
            and now_ms - record.acquired_at_ms < hold_ms_max
            and record.renewal is None
        )
        return islice(due, 1) if self.are_switched_off else due

    def grant(self, records: Iterable[HeldRecord], lock_deadline_ms: int) -> None:
        """Their locks have begun anew."""
        self._refused_count = 0
        for record in records:
            record.lock_deadline_ms = lock_deadline_ms
            _answer(record, ErrorCode.none, None)
            record.renewal = None

    def refuse(self, records: Iterable[HeldRecord], code: ErrorCode, message: str | None) -> None:
        """Their locks stay as they are."""
        for record in records:
            _answer(record, code, message)
            record.renewal = None

    def refuse_alone(self, record: HeldRecord, message: str | None) -> None:
        """This one's lock had ended, or the group renews none."""
        self._refused_count += 1
        _answer(record, ErrorCode.invalid_record_state, message)

    def begin_anew(self) -> None:
        """What the last session was refused says nothing of the next."""
        self._refused_count = 0


def _answer(record: HeldRecord, code: ErrorCode, message: str | None) -> None:
    assert record.renewal is not None, record
    record.renewal.code, record.renewal.message = code, message
