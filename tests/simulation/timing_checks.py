"""The promises of delays and of the expiry of records (docs/decisions/0031), by the wall clock of the broker
at the moment of a delivery or of a decision. The times of a record are read from the log itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import NamedTuple

from barnabas.protocol.delivery_state import Cause
from barnabas.protocol.errors import ApiError
from barnabas.protocol.record_batch import read_header
from barnabas.protocol.records import iterate_records
from barnabas.share.leader import batch_keys
from barnabas.share.leader.handout import Handout
from barnabas.share.leader.share_partition_leader import SharePartitionLeader
from barnabas.share.partition.decision import Decision
from barnabas.share.partition.limits import RecordTiming
from barnabas.storage.errors import StorageError
from tests.simulation.timing import HEADER
from tests.simulation.world import World

# pyright: reportPrivateUsage=false


class _Times(NamedTuple):
    timestamp_ms: int
    delay: bytes | None
    """The value of the record's header."""


class TimingChecks:
    """The checks of one run; `fail` gets a sentence about a broken promise."""

    def __init__(self, world: World, fail: Callable[[str], None]) -> None:
        self._world = world
        self._fail = fail

    def check_handout(self, leader: SharePartitionLeader, handout: Handout) -> None:
        """No record is delivered before it is due, or after it has expired."""
        timing = self._timing_of(leader)
        if timing is None:
            return
        now_ms = self._world.machine.clock.wall_ms()
        for first_offset, last_offset, delivery_count in handout.acquired:
            for offset, times in _times_between(leader, first_offset, last_offset):
                due_ms = times.timestamp_ms + _delay_ms(timing, times)
                if delivery_count == 1 and now_ms < due_ms:
                    self._fail(
                        f"{leader.group_id}: {offset} is delivered {due_ms - now_ms} ms before it is due"
                    )
                if timing.ttl_ms and now_ms >= times.timestamp_ms + timing.ttl_ms:
                    self._fail(f"{leader.group_id}: {offset} is delivered, although it has expired")

    def check_decision(self, leader: SharePartitionLeader, decision: Decision) -> None:
        """A record expires at its time, and not before."""
        expired = [one for one in decision.changes if one.cause is Cause.EXPIRED]
        timing = self._timing_of(leader) if expired else None
        if timing is None:
            return
        now_ms = self._world.machine.clock.wall_ms()
        for one in expired:
            for offset, times in _times_between(leader, one.base_offset, one.last_offset):
                if now_ms < times.timestamp_ms + timing.ttl_ms:
                    self._fail(f"{leader.group_id}: {offset} expired too early")

    def _timing_of(self, leader: SharePartitionLeader) -> RecordTiming | None:
        """None if nothing can be checked: the clock was set, so that an earlier decision may be from another
        time, or the settings may be lost.
        """
        world, settings = self._world, self._world.scenario.timing
        may_be_lost = world.machine.power_loss_count and not world.scenario.survives_power_loss
        if leader.group_id not in settings.group_ids or world.machine.clock.was_set or may_be_lost:
            return None
        return leader.limits().timing


def _delay_ms(timing: RecordTiming, times: _Times) -> int:
    if timing.delay_header is not None and times.delay is not None and times.delay.isdigit():
        return int(times.delay)
    return timing.delay_ms


def _times_between(
    leader: SharePartitionLeader, first_offset: int, last_offset: int
) -> Iterator[tuple[int, _Times]]:
    """The times of the records of the range, as far as the log can be read now. A batch of too many records
    is judged as a whole.
    """
    with suppress(StorageError, ApiError):
        offset = first_offset
        while offset <= last_offset:
            found = leader.log.read_batches(
                offset, records_max=last_offset - offset + 1, bytes_max=1 << 24, upper_offset=None
            )
            if not found.batches:
                return
            for span in found.batches:
                if read_header(found.data, span.start).record_count > batch_keys.HASHED_RECORDS_MAX:
                    continue
                for record in iterate_records(found.data, span.start):
                    if first_offset <= record.offset <= last_offset:
                        yield record.offset, _Times(record.timestamp_ms, dict(record.headers).get(HEADER))
            offset = found.batches[-1].last_offset + 1
