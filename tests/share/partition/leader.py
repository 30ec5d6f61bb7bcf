"""A share-partition over a small log, for tests that fetch and acknowledge and need little else."""

from __future__ import annotations

from barnabas.protocol.control_record import ShareCheckpoint, ShareDelta
from barnabas.protocol.decode.acknowledgements import AckBatch
from barnabas.protocol.delivery_state import RecordState, StateRange
from barnabas.share.log_store.delta_states import delta_states
from barnabas.share.partition.decision import Decision, Outcome
from barnabas.share.partition.limits import AcquireMode, ShareLimits
from barnabas.storage.format.control_runs import ControlRuns
from barnabas.storage.format.share_image import ShareStateImage
from tests.share.partition.core import SharePartition

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
BATCH_OPTIMIZED, RECORD_LIMIT = AcquireMode
AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVING, ARCHIVED = RecordState
LIMITS = ShareLimits(delivery_count_max=5, lock_duration_ms=1_000, record_locks_max=200)


class Leader:
    """`log` is the producer batches as (base_offset, last_offset); `control` puts control records between."""

    def __init__(
        self,
        start_offset: int = 0,
        *,
        limits: ShareLimits = LIMITS,
        states: tuple[StateRange, ...] = (),
        end_offset: int | None = None,
    ) -> None:
        self.limits = limits
        self.now_ms = 0
        self.log: list[tuple[int, int]] = []
        self.log_end_offset = 0
        self.control_runs = ControlRuns()
        self.image = ShareStateImage(self.control_runs)
        if end_offset is None:
            end_offset = states[-1].last_offset + 1 if states else start_offset
        checkpoint = ShareCheckpoint("group", 1, 1, 0, 0, 0, start_offset, end_offset, 0, states)
        self.image.replay_checkpoint(checkpoint, 1_000_000)
        self.partition = SharePartition(self.image, self.control_runs)
        self.deltas: list[ShareDelta] = []

    def produce(self, *sizes: int) -> Leader:
        for size in sizes:
            self.log.append((self.log_end_offset, self.log_end_offset + size - 1))
            self.log_end_offset += size
        return self

    def control(self, count: int) -> Leader:
        self.control_runs.append(self.log_end_offset, self.log_end_offset + count - 1)
        self.log_end_offset += count
        return self

    def fetch(
        self,
        member_id: str = "member-1",
        records_max: int = 500,
        *,
        mode: AcquireMode = BATCH_OPTIMIZED,
        batch_size: int = 500,
        aborted: tuple[tuple[int, int], ...] = (),
        markers: tuple[int, ...] = (),
    ) -> list[tuple[int, int, int]]:
        """Acquires from the whole log above each read's offset; missing records are recorded as gaps."""
        plan = self.partition.plan_acquire(records_max, self.limits, mode)
        batches = [batch for batch in self.log if plan.reads and batch[1] >= plan.reads[0][0]]
        acquisition = self.partition.acquire(
            plan,
            member_id,
            batches,
            records_max=records_max,
            batch_size=batch_size,
            acquire_mode=mode,
            limits=self.limits,
            now_ms=self.now_ms,
            aborted=aborted,
            has_no_data=lambda index: batches[index][0] in markers,
        )
        if acquisition.gaps is not None:
            self.record(acquisition.gaps)
        return acquisition.acquired

    def decide(
        self, first_offset: int, last_offset: int, *types: int, member_id: str = "member-1"
    ) -> Decision:
        return self.decide_batches(AckBatch(first_offset, last_offset, types), member_id=member_id)

    def decide_batches(self, *batches: AckBatch, member_id: str = "member-1") -> Decision:
        return self.partition.decide_acknowledge(member_id, batches, self.limits, self.now_ms)

    def acknowledge(
        self, first_offset: int, last_offset: int, *types: int, member_id: str = "member-1"
    ) -> Outcome:
        return self.record(self.decide(first_offset, last_offset, *types, member_id=member_id))

    def release_member(self, member_id: str = "member-1") -> Decision:
        return self.partition.decide_release_member(member_id, self.limits, self.now_ms)

    def expire(self, now_ms: int) -> Decision:
        self.now_ms = now_ms
        return self.partition.expire(now_ms, self.limits)

    def record(self, *decisions: Decision) -> Outcome:
        """Appends the decisions as one delta, or as a checkpoint if one requires it, and completes them."""
        changes = [change for decision in decisions for change in decision.changes]
        states = delta_states(self.image, self.partition, changes)
        starts = [decision.start_offset for decision in decisions if decision.start_offset is not None]
        if starts:
            checkpoint = self.image.to_checkpoint(
                "group",
                checkpoint_epoch=self.image.checkpoint_epoch + 1,
                decided_at_ms=0,
                leader_epoch=0,
                start_offset=max(starts),
                changes=states,
            )
            self.image.replay_checkpoint(checkpoint, self.image.last_control_offset + 1)
        elif changes:
            delta = ShareDelta(
                "group", 1, self.image.checkpoint_epoch, 0, self.image.last_control_offset, states
            )
            self.image.replay_delta(delta, self.image.last_control_offset + 1)
            self.deltas.append(delta)
        outcomes = [self.partition.complete(decision) for decision in decisions]
        return Outcome(any(one.released for one in outcomes), any(one.spso_moved for one in outcomes))

    def states(self) -> list[tuple[int, int, RecordState, int]]:
        """The recorded form of the records from SPSO to SPEO: (first, last, state, delivery count)."""
        ranges = self.partition.durable_ranges(self.partition.spso, self.partition.speo)
        return [(one.base_offset, one.last_offset, one.state, one.delivery_count) for one in ranges]

    def restart(self) -> None:
        """The broker starts again: state that lived in memory only is gone."""
        self.partition = SharePartition(self.image, self.control_runs)
