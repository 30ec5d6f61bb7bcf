"""A shard of the share coordinator, or the whole coordinator, over a simulated log."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from barnabas.coordinator.replay.interfaces import TopicShape
from barnabas.coordinator.share_state.share_coordinator import ShareCoordinator, ShareCoordinatorSettings
from barnabas.protocol.identity import SharePartitionKey
from barnabas.protocol.share_state_records import (
    ShareSnapshotValue,
    ShareStateRecord,
    ShareUpdateValue,
    decode_share_state_record,
)
from barnabas.runtime.completion import Completion
from barnabas.storage.format.share_partition_state import SharePartitionState, StateWrite
from barnabas.storage.format.state_batches import StateBatch
from tests.coordinator.simulated_log import SimulatedLog, take_all

TOPIC_ID = UUID(int=7)
KEY = SharePartitionKey("group", TOPIC_ID, 0)
OTHER = SharePartitionKey("other", TOPIC_ID, 1)
NOW_MS = 1_700_000_000_000


class Topics:
    """Topics by id, each with two partitions (`TopicCatalog`)."""

    def __init__(self) -> None:
        self.ids = {TOPIC_ID}

    def topic_by_name(self, name: str) -> TopicShape | None:
        raise NotImplementedError

    def topic_by_id(self, topic_id: UUID) -> TopicShape | None:
        return TopicShape("t", topic_id, 2) if topic_id in self.ids else None


class PrunedLog(SimulatedLog):
    """A log that records deletions, as (partition, offset) (`ShareStateLog`)."""

    def __init__(self) -> None:
        super().__init__()
        self.pruned: list[tuple[int, int]] = []

    def delete_before(self, partition: int, offset: int) -> None:
        self.pruned.append((partition, offset))


class Bench:
    """A coordinator over one partition, so that all share-partitions share a log."""

    def __init__(
        self, log: PrunedLog | None = None, *, updates_per_snapshot: int = 500, load: bool = True
    ) -> None:
        self.log = log or PrunedLog()
        self.topics = Topics()
        self.now_ms = NOW_MS
        self.elapsed_ms = 0
        """Monotonic time."""
        settings = ShareCoordinatorSettings(
            partition_count=1, updates_per_snapshot=updates_per_snapshot, cold_interval_ms=1000
        )
        self.coordinator = ShareCoordinator(
            log=self.log,
            catalog=self.topics,
            settings=settings,
            now_ms=lambda: self.elapsed_ms,
            wall_ms=lambda: self.now_ms,
        )
        if load:
            take_all(self.coordinator.load(0, self.log.stored(0)))

    def advance(self, elapsed_ms: int) -> None:
        """Let time pass by both clocks."""
        self.now_ms += elapsed_ms
        self.elapsed_ms += elapsed_ms

    def restarted(self, *, later_ms: int = 0) -> Bench:
        """Another coordinator, loaded from the log, in a process whose monotonic time begins anew."""
        again = Bench(self.log, load=False)
        again.now_ms = self.now_ms + later_ms
        take_all(again.coordinator.load(0, again.log.stored(0)))
        return again

    def initialise(
        self, start_offset: int = 0, *, state_epoch: int = 1, key: SharePartitionKey = KEY
    ) -> Completion[None]:
        return self.coordinator.initialise(
            key, state_epoch=state_epoch, start_offset=start_offset, now_ms=self.now_ms
        )

    def write(
        self, *batches: tuple[int, int], start_offset: int = 0, key: SharePartitionKey = KEY, **values: Any
    ) -> Completion[None]:
        """Batches are acknowledged with their first delivery."""
        written: dict[str, Any] = {
            "state_epoch": 1,
            "leader_epoch": 0,
            "delivery_complete_count": 0,
            **values,
        }
        state_batches = [StateBatch(first, last, 1, 2) for first, last in batches]
        write = StateWrite(start_offset=start_offset, state_batches=state_batches, **written)
        return self.coordinator.write(key, write, now_ms=self.now_ms)

    def read(
        self, leader_epoch: int | None = None, *, key: SharePartitionKey = KEY
    ) -> Completion[SharePartitionState]:
        """As the leader of that epoch, or of the newest one that is known."""
        if leader_epoch is None:
            known = self.coordinator.states().get(key)
            leader_epoch = 0 if known is None else known.leader_epoch
        return self.coordinator.read(key, leader_epoch=leader_epoch, now_ms=self.now_ms)

    def records(self) -> list[ShareStateRecord]:
        decoded = [decode_share_state_record(one.key or b"", one.value) for one in self.log.stored_records(0)]
        return [record for record in decoded if record is not None]

    def kinds(self) -> str:
        """One letter for each record: Snapshot, update, Tombstone."""
        letters = {ShareSnapshotValue: "S", ShareUpdateValue: "u", type(None): "T"}
        return "".join(letters[type(value)] for _, value in self.records())
