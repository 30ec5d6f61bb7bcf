"""The order of keys, by the answers that the members of one share group got for one partition.

With `share.order=key` these facts exclude each other, and a `Violation` names them:

- A member got a record while another member, by its answers, held a record of the same key. Or it holds more
  of them than `share.order.key.in.flight.max`.
- A record was delivered by an answer, and an earlier record of its key is delivered for a later request. The
  second delivery shows that the earlier record was not final at the time of the first. Records that came in
  one answer are one run, within which the member decides. All records of a batch that is too large to be
  hashed count as records of one key.
- A record was delivered while the acknowledgement of another record of its key waited for a transaction, or
  while that of a batch that is too large to be hashed did.
- A member acquired a record, and the answer does not have it.
- A member's acknowledgement of a record succeeded, although the lock of an earlier record of the same run had
  certainly ended. The broker had to take back the record.

Answers from a time when the group may have had no order prove nothing, and neither do those from before a
reset or a loss that nothing promised to prevent (`ShareModel.generation`). A later acknowledgement of a
record from such an outdated answer proves nothing either: the record's run is unknown, and if the same
request releases an earlier record of its run, it counts as released.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.conformance.share_member import RELEASE, RENEW
from tests.simulation.keyed_records import KeyedRecords
from tests.simulation.model import GroupModel, Lease, ShareModel, Violation

Types = Mapping[int, tuple[int, int]]
"""Acknowledge type and delivery count by offset."""


@dataclass(slots=True)
class Run:
    """The records of one key that came in one answer to a request that was sent at `sent_ms`."""

    member_id: str
    offsets: frozenset[int]
    sent_ms: float
    answered_ms: float
    locked_until_ms: dict[int, float]
    """By offset, the time by which its lock has ended, unless the member acknowledges the record."""
    released: set[int] = field(default_factory=set[int])
    """The records whose release was confirmed."""


class Answer(NamedTuple):
    """The records that a member acquired with one answer."""

    member_id: str
    offsets: list[int]
    values: Mapping[int, bytes | None]
    """The values of all records in the answer, by offset."""
    sent_ms: float
    answered_ms: float


class Sending(NamedTuple):
    """Acknowledgements that a member has sent."""

    types: Types
    sent_ms: float
    runs: Mapping[int, Run]
    """The runs in which the member got the records, by offset. Those of an earlier generation are missing."""
    behind: set[int]
    """The records behind released ones of their runs. The member may lose them; if the request succeeds,
    those that it names count as released.
    """


class OrderModel:
    """The deliveries of one group from one partition, by key."""

    def __init__(
        self,
        share: ShareModel,
        group: GroupModel,
        keys: KeyedRecords,
        log_start_offset: Callable[[], int],
        group_start_offset: Callable[[], int],
        *,
        may_expire: bool = False,
    ) -> None:
        """No member holds a record below the present start of the log, or of the group, although a renewal
        of such a record succeeds. `may_expire`: records may expire.
        """
        self._may_expire = may_expire
        self._log_start_offset = log_start_offset
        self._group_start_offset = group_start_offset
        self._share = share
        self._group = group
        self._keys = keys
        self._generation = share.generation
        self._runs: dict[bytes, list[Run]] = {}
        self._last_run: dict[tuple[str, int], Run] = {}
        """By member and offset, the run of the last delivery of a record to that member. The answers to two
        members may arrive in another order than the broker has given them.
        """
        self._key_of: dict[int, bytes] = {}
        """By offset, the key of each delivered record, or the name of its large batch. A record without a key
        has one of its own.
        """
        self._alone: set[int] = set()
        """The delivered records of batches that are delivered alone."""

    def delivered(self, answer: Answer) -> None:
        """A member got records, and `share` has the leases on them."""
        self._forget_outdated()
        by_key: dict[bytes, list[int]] = {}
        for offset in answer.offsets:
            value = answer.values.get(offset)
            key = self._key(value) or b"the record at %d" % offset
            if self._keys.large_batch_of(value) is not None:
                self._alone.add(offset)
            self._key_of[offset] = key
            by_key.setdefault(key, []).append(offset)
        locked_until_ms = answer.answered_ms + max(self._group.lock_duration_ms.values_since(answer.sent_ms))
        has_order = 0 not in self._group.key_run_max.values_since(answer.sent_ms)
        if has_order:
            self._check_complete(answer)
        for key, offsets in by_key.items():
            if has_order:
                self._check_turn(key, offsets[0], answer.sent_ms)
            run = Run(
                answer.member_id,
                frozenset(offsets),
                answer.sent_ms,
                answer.answered_ms,
                dict.fromkeys(offsets, locked_until_ms),
            )
            self._runs.setdefault(key, []).append(run)
            self._last_run |= {(answer.member_id, offset): run for offset in offsets}
        if has_order:
            self._check_held(answer)

    def sent(self, member_id: str, types: Types, sent_ms: float) -> Sending:
        """A member sends these acknowledgements, so the ends of their locks are unknown from now on."""
        runs = self._runs_of(member_id, types)
        behind: set[int] = set()
        for offset, run in runs.items():
            run.locked_until_ms.pop(offset, None)
            if types[offset][0] == RELEASE:
                behind.update(one for one in run.offsets if one > offset)
        return Sending(types, sent_ms, runs, behind)

    def sent_in_transaction(self, member_id: str, types: Types) -> set[int]:
        """A member sends these acknowledgements in a transaction. From now on it may lose the records behind
        them in their runs, because the transaction may be aborted. Returns these.
        """
        behind: set[int] = set()
        for offset, run in self._runs_of(member_id, types).items():
            run.locked_until_ms.pop(offset, None)
            behind.update(one for one in run.offsets if one > offset)
        return behind - set(types)

    def check_waiting(self, answer: Answer, waiting: Mapping[int, float]) -> None:
        """A member got records while the acknowledgements of others, confirmed at these times, waited for
        transactions.
        """
        self._forget_outdated()
        in_order = [
            one for one, told_ms in waiting.items() if 0 not in self._group.key_run_max.values_since(told_ms)
        ]
        held = {self._key_of[one]: one for one in in_order if one in self._key_of}
        alone = next((one for one in in_order if one in self._alone), None)
        for offset in answer.offsets:
            key = self._key(answer.values.get(offset))
            other = alone if key is None else held.get(key, alone)
            if other is not None:
                raise Violation(
                    f"{self._share.name}: {offset} is delivered while the acknowledgement of {other}, "
                    "which has the same key or goes alone, waits for a transaction"
                )

    def renewed(
        self, member_id: str, offsets: Iterable[int], sent_ms: float, answered_ms: float
    ) -> list[int]:
        """A member got the confirmation that its locks on these records were renewed. Returns those that it
        does not lose with an earlier record of their run.
        """
        until_ms = answered_ms + max(self._group.lock_duration_ms.values_since(sent_ms))
        safe = {*offsets, *self._share.final}
        kept: list[int] = []
        for offset in offsets:
            run = self._last_run.get((member_id, offset))
            if run is not None:
                run.locked_until_ms[offset] = until_ms
            if run is None or all(one in safe for one in run.offsets if one < offset):
                kept.append(offset)
        return kept

    def confirmed(self, sending: Sending) -> Types:
        """The acknowledgements have succeeded; returns those that are certainly in force."""
        runs = {offset: run for offset, run in sending.runs.items() if offset not in sending.behind}
        in_force = {offset: sending.types[offset] for offset in runs}
        for offset, run in runs.items():
            if in_force[offset][0] not in (RENEW, RELEASE):
                self._check_not_taken_back(run, offset, sending.sent_ms)
        for offset, run in runs.items():
            ack_type, delivery_count = in_force[offset]
            limits = self._group.delivery_count_max.values_since(run.sent_ms)
            # The release of a record that was final by then has no effect.
            may_be_final = offset in self._share.final or offset in self._share.administered
            if ack_type == RELEASE and delivery_count < min(limits) and not may_be_final:
                run.released.add(offset)
        return in_force

    def _runs_of(self, member_id: str, offsets: Iterable[int]) -> dict[int, Run]:
        """The runs of the last deliveries of these records to this member, in the present generation."""
        self._forget_outdated()
        runs = ((offset, self._last_run.get((member_id, offset))) for offset in offsets)
        return {offset: run for offset, run in runs if run is not None}

    def _key(self, value: bytes | None) -> bytes | None:
        """The key of a record, or the name of its large batch."""
        batch = self._keys.large_batch_of(value)
        return self._keys.key_of(value) if batch is None else batch

    def _check_complete(self, answer: Answer) -> None:
        """Each record that the member acquired is in the answer, unless compaction has removed it."""
        missing = [one for one in answer.offsets if one not in answer.values]
        if missing and not self._keys.compacts:
            raise Violation(f"{self._share.name}: {missing} are acquired, but not in the answer")

    def _check_turn(self, key: bytes, offset: int, sent_ms: float) -> None:
        """No record behind this one, of the same key, was delivered without it."""
        for run in self._runs.get(key, ()):
            later = max(run.offsets)
            if (
                later > offset
                and offset not in run.offsets
                and run.answered_ms <= sent_ms
                and 0 not in self._group.key_run_max.values_since(run.sent_ms)
            ):
                raise Violation(
                    f"{self._share.name}: {offset} is delivered after {later}, which has the same key {key!r}"
                )

    def _check_held(self, answer: Answer) -> None:
        """No other member holds a record of a key that came with this answer."""
        start_offset = max(self._log_start_offset(), self._group_start_offset())
        in_force = {
            offset: lease
            for offset, lease in self._share.leases.items()
            if offset >= start_offset and answer.answered_ms < lease.until_ms and lease.is_in_force()
        }
        run_max = max(self._group.key_run_max.values_since(answer.sent_ms))
        got = [one for one in answer.offsets if one in in_force]
        by_key: dict[bytes, list[int]] = {}
        for offset in in_force:
            if offset in self._key_of:
                by_key.setdefault(self._key_of[offset], []).append(offset)
        for key in {self._key_of[one]: None for one in got if one in self._key_of}:
            self._check_key(key, by_key[key], in_force, run_max)
        if self._alone.intersection(got) and (others := set(in_force) - self._alone):
            raise Violation(
                f"{self._share.name}: {got} are delivered while {sorted(others)} are held, "
                "although their batch is delivered alone"
            )

    def _check_key(self, key: bytes, offsets: list[int], in_force: Mapping[int, Lease], run_max: int) -> None:
        holders = sorted({in_force[one].member_id for one in offsets})
        if len(holders) > 1:
            raise Violation(f"{self._share.name}: {holders} hold {sorted(offsets)} of one key {key!r}")
        if len(offsets) > run_max and self._alone.isdisjoint(offsets):
            raise Violation(
                f"{self._share.name}: {holders[0]} holds {sorted(offsets)} of one key {key!r}, "
                f"more than {run_max}"
            )

    def _check_not_taken_back(self, run: Run, offset: int, sent_ms: float) -> None:
        """The acknowledgement of this record succeeded, so no record before it in its run was given up.

        Where records expire, where an administrator archives them, or where another member got the record,
        it may have become final after that: an acknowledgement of a record below the group's start offset
        succeeds without effect.
        """
        if self._may_expire or offset in self._share.administered or self._was_lost(run, offset):
            return
        if 0 in self._group.key_run_max.values_since(run.sent_ms):
            return
        log_start_offset = self._log_start_offset()
        for earlier in run.offsets:
            if not log_start_offset <= earlier < offset:
                continue
            if earlier in run.released:
                raise Violation(
                    f"{self._share.name}: {offset} is final, but {earlier} before it was released"
                )
            until_ms = run.locked_until_ms.get(earlier)
            if until_ms is not None and until_ms < sent_ms and not self._may_be_given_up(earlier, run):
                raise Violation(
                    f"{self._share.name}: {offset} is final, but the lock of {earlier} before it has expired"
                )

    def _was_lost(self, run: Run, offset: int) -> bool:
        """Whether the record of this run may have been delivered again since."""
        return any(
            offset in other.offsets and other.answered_ms > run.sent_ms
            for other in self._runs[self._key_of[offset]]
            if other is not run
        )

    def _may_be_given_up(self, offset: int, run: Run) -> bool:
        """Whether the delivery of the record in this run may have been its last, by the limit or by an
        administrator: then it is not released.
        """
        if offset in self._share.administered:
            return True
        delivery_count, _ = self._share.delivered.get(offset, (0, 0.0))
        return delivery_count >= min(self._group.delivery_count_max.values_since(run.sent_ms))

    def _forget_outdated(self) -> None:
        if self._generation != self._share.generation:
            self._generation = self._share.generation
            self._runs.clear()
            self._last_run.clear()
            self._key_of.clear()
            self._alone.clear()
