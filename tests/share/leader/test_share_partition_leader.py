"""A leader between its core, its log and its store: the records that it reads and delivers, and the state
that it records.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from barnabas.protocol.control_record import ShareCheckpoint
from barnabas.protocol.decode.acknowledgements import AckBatch
from barnabas.protocol.delivery_state import LetterPlace, RecordState
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.runtime.completion import Completion
from barnabas.share.leader.handout import NOTHING
from barnabas.share.leader.recorded_changes import RecordedChange
from barnabas.share.leader.share_partition_leader import (
    NOTHING_TO_RECORD,
    UNRECORDED_RETRY_MS,
    DecisionStore,
    SharePartitionLeader,
)
from barnabas.share.partition.acquisition import Demand
from barnabas.share.partition.decision import Decision
from barnabas.share.partition.limits import AcquireMode, RetryBackoff, ShareLimits
from tests.share.leader.leading import LOCK_MS, RELEASE, acknowledge, acknowledge_batches, leading
from tests.storage.log_building import append_deltas, headers_of

ACCEPT, RENEW = 1, 4


async def test_whole_batches_are_handed_out_with_their_acquired_ranges() -> None:
    stage = await leading()
    stage.produce(3, 4)
    handout = stage.fetch(stage.lead(), 5)
    assert handout.acquired == [(0, 6, 1)]
    assert (handout.record_count, handout.size_bytes) == (7, sum(map(len, handout.buffers)))
    assert [header.base_offset for header in headers_of(handout.buffers)] == [0, 3]


async def test_share_state_between_the_batches_is_cut_out() -> None:
    stage = await leading()
    stage.produce(2)
    append_deltas(stage.log, 3, "stranger")
    stage.produce(2)
    handout = stage.fetch(stage.lead())
    assert handout.acquired == [(0, 1, 1), (5, 6, 1)]
    assert [header.base_offset for header in headers_of(handout.buffers)] == [0, 5]
    assert handout.record_count == 4


async def test_share_state_below_the_log_start_is_not_counted_in_a_batch_near_the_delivery_limit() -> None:
    stage = await leading()
    stage.produce(1)
    leader = stage.lead()
    assert stage.fetch(leader).acquired == [(0, 0, 1)]
    append_deltas(stage.log, 3, "stranger")
    stage.produce(5)
    for delivery_count in (1, 2, 3):
        assert stage.fetch(leader).acquired == [(5, 9, delivery_count)]
        acknowledge(leader, 5, 9, RELEASE)
    stage.log.delete_records(5)
    assert stage.fetch(leader).acquired == [(5, 6, 4)], "half of the five records"


async def test_nothing_is_handed_out_of_an_empty_log() -> None:
    stage = await leading()
    assert stage.fetch(stage.lead()) == NOTHING


async def test_the_byte_limit_ends_a_read_after_the_batch_that_reaches_it() -> None:
    stage = await leading()
    stage.produce(1, 1, 1)
    leader = stage.lead()
    demand = Demand("member", 500, 1, 500, AcquireMode.BATCH_OPTIMIZED, ShareLimits(), 0)
    assert leader.acquire(leader.core.plan(demand), demand, 3).acquired == [(0, 0, 1)]


async def test_nothing_at_or_above_the_upper_offset_is_read() -> None:
    stage = await leading()
    stage.produce(1, 1, 1)
    leader = stage.lead()
    demand = Demand("member", 500, 1 << 20, 500, AcquireMode.BATCH_OPTIMIZED, ShareLimits(), 0)
    assert leader.acquire(leader.core.plan(demand), demand, 2).acquired == [(0, 1, 1)]


async def test_scattered_records_come_back_with_each_batch_once() -> None:
    stage = await leading()
    stage.produce(*[1] * 100)
    leader = stage.lead()
    stage.fetch(leader)
    for offset in (3, 50, 51, 99):
        acknowledge(leader, offset, offset, RELEASE)
    handout = stage.fetch(leader)
    assert handout.acquired == [(3, 3, 2), (50, 51, 2), (99, 99, 2)]
    bases = [header.base_offset for header in headers_of(handout.buffers)]
    assert bases == sorted(set(bases))
    assert {3, 50, 51, 99} <= set(bases) < set(range(100))


async def test_a_lock_that_is_renewed_beside_an_accepted_record_ends_in_time() -> None:
    stage = await leading()
    stage.produce(2)
    leader = stage.lead()
    stage.fetch(leader)
    limits = leader.limits()._replace(lock_duration_ms=LOCK_MS // 2)
    now_ms = stage.clock.monotonic_ms()
    leader.acknowledge("member", [AckBatch(0, 0, (ACCEPT,)), AckBatch(1, 1, (RENEW,))], limits, now_ms)
    stage.timers.advance(LOCK_MS // 2)
    assert stage.fetch(leader, member_id="other").acquired == [(1, 1, 2)]


async def test_an_acknowledgement_that_needs_no_record_is_complete_at_once() -> None:
    stage = await leading()
    stage.produce(2)
    leader = stage.lead()
    stage.fetch(leader)
    end_offset = stage.log.log_end_offset
    assert acknowledge_batches(leader, "member", [AckBatch(0, 1, (RENEW,))]) is NOTHING_TO_RECORD
    assert stage.log.log_end_offset == end_offset
    acknowledge(leader, 0, 1)
    below_the_start = acknowledge_batches(leader, "member", [AckBatch(0, 1, (1,))])
    assert below_the_start is NOTHING_TO_RECORD


async def test_a_refused_acknowledgement_records_nothing() -> None:
    stage = await leading()
    stage.produce(2)
    leader = stage.lead()
    stage.fetch(leader)
    end_offset = stage.log.log_end_offset
    with pytest.raises(ApiError):
        acknowledge(leader, 0, 1, member_id="other")
    assert stage.log.log_end_offset == end_offset


async def test_releasing_a_member_releases_only_its_own_records() -> None:
    stage = await leading()
    stage.produce(2, 2)
    leader = stage.lead()
    stage.fetch(leader, 2)
    stage.fetch(leader, 2, member_id="other")
    leader.release_member("member", is_clean=True)
    assert stage.fetch(leader, member_id="third").acquired == [(0, 1, 2)]
    end_offset = stage.log.log_end_offset
    leader.release_member("nobody", is_clean=True)
    assert stage.log.log_end_offset == end_offset


async def test_the_deadline_is_that_of_the_earliest_lock() -> None:
    stage = await leading()
    stage.produce(2, 2)
    leader = stage.lead()
    assert leader.next_deadline_ms() is None
    stage.fetch(leader, 2)
    begun_ms = stage.clock.now_ms
    stage.timers.advance(LOCK_MS // 2)
    stage.fetch(leader, 2)
    assert leader.next_deadline_ms() == begun_ms + LOCK_MS


async def test_the_limits_are_read_each_time() -> None:
    stage = await leading()
    stage.produce(2)
    leader = stage.lead()
    stage.fetch(leader)
    stage.limits = ShareLimits(delivery_count_max=1, lock_duration_ms=LOCK_MS, record_locks_max=200)
    acknowledge(leader, 0, 1, RELEASE)
    assert leader.core.spso == 2


async def test_a_checkpoint_has_the_whole_state() -> None:
    stage = await leading()
    stage.produce(5)
    leader = stage.lead()
    stage.fetch(leader)
    acknowledge(leader, 0, 1)
    acknowledge(leader, 3, 3)
    assert leader.checkpoint().done
    checkpoint = stage.records()[-1][1]
    assert isinstance(checkpoint, ShareCheckpoint)
    assert (checkpoint.start_offset, checkpoint.end_offset, checkpoint.delivery_complete_count) == (2, 4, 1)
    assert leader.image.delta_count == 0


async def test_lag_counts_records_that_are_not_final() -> None:
    stage = await leading()
    stage.produce(5)
    leader = stage.lead()
    assert leader.lag() == 5
    stage.fetch(leader)
    acknowledge(leader, 1, 2)
    assert leader.lag() == 3


async def test_no_retry_waits_longer_than_its_bound_after_a_start_with_an_earlier_time() -> None:
    stage = await leading()
    backoff = RetryBackoff(base_ms=2_000, max_ms=2_000)
    stage.limits = stage.limits._replace(retry_backoff=backoff)
    stage.produce(5)
    stage.timers.advance(3_600_000)
    leader = stage.lead()
    stage.fetch(leader)
    acknowledge(leader, 0, 4, RELEASE)
    restarted = await leading(stage.filesystem.copy())
    restarted.limits = stage.limits
    leader = restarted.lead()
    assert leader.core.waiting_count == 5
    restarted.timers.advance(2_000)
    assert restarted.fetch(leader).acquired == [(0, 4, 2)]


class FailsOnce:
    """A store whose next write fails."""

    def __init__(self, store: DecisionStore) -> None:
        self._store = store
        self.fails = False

    def record(self, leader: SharePartitionLeader, decision: Decision) -> Completion[None]:
        if self.fails:
            self.fails = False
            return Completion.failed(ApiError(ErrorCode.coordinator_not_available))
        return self._store.record(leader, decision)

    def last_changes(
        self, leader: SharePartitionLeader, wanted: Sequence[tuple[int, int]]
    ) -> list[RecordedChange]:
        return self._store.last_changes(leader, wanted)


async def test_changes_in_force_are_recorded_although_no_other_decision_follows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = await leading()
    stage.produce(2)
    stage.limits = stage.limits._replace(delivery_count_max=1, letter_place=LetterPlace())
    leader = stage.lead()
    stage.fetch(leader)
    store = FailsOnce(stage.partition_store)
    monkeypatch.setattr(leader, "_store", store)
    store.fails = True
    stage.timers.advance(LOCK_MS)
    assert (leader.image.ranges, stage.letters.due) == ([], []), "the archiving could not be recorded"
    stage.timers.advance(UNRECORDED_RETRY_MS)
    assert [one.state for one in leader.image.ranges] == [RecordState.ARCHIVING]
    assert [(one.base_offset, one.last_offset) for one in stage.letters.due] == [(0, 1)]
