"""Cleaning a log with any history and opening it again changes nothing visible.

Random histories of several groups' checkpoints, deltas and deletions, of records of producers, tombstones and
log starts, cleaned at random times; each is compared with a log that is never cleaned.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.protocol.control_record import (
    ControlType,
    ShareCheckpoint,
    ShareDelta,
    build_control_batch,
    encode_checkpoint,
    encode_delta,
)
from barnabas.protocol.delivery_state import Cause, RecordState, StateRange
from barnabas.storage.format.share_image import ShareStateImage
from barnabas.storage.format.share_index import group_hash
from barnabas.storage.format.share_snapshot import FILE_NAME as SHARE_SNAPSHOT_FILE
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log_config import LogConfig
from barnabas.storage.segments.control_batch import ControlBatch
from tests.storage.cleaner.dirty_logs import (
    COMPACTED,
    append_batch,
    everything,
    keyed_batch,
    latest_by_key,
    records_read,
    roll,
)
from tests.storage.log_building import DIRECTORY, NOW_MS, append_control, open_log
from tests.storage.memory_filesystem import MemoryFileSystem

GROUPS: Sequence[str] = ("one", "two", "three")
_KEYS = st.sampled_from([b"a", b"b", b"c", b"d" * 40])
_VALUES = st.one_of(st.none(), st.binary(min_size=1, max_size=30))
_RECORDS = st.lists(st.tuples(_KEYS, _VALUES), min_size=1, max_size=4)
_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("records"), _RECORDS),
        st.tuples(st.just("produce"), _RECORDS),
        st.tuples(st.just("record_state"), st.sampled_from(GROUPS)),
        st.tuples(st.just("record_state"), st.sampled_from(GROUPS)),
        st.tuples(st.just("checkpoint"), st.sampled_from(GROUPS)),
        st.tuples(st.just("delete"), st.sampled_from(GROUPS)),
        st.tuples(st.just("delete_records"), st.integers(0, 100)),
        st.tuples(st.just("roll"), st.none()),
        st.tuples(st.just("clean"), st.lists(st.booleans(), min_size=1, max_size=4)),
        st.tuples(st.just("reopen"), st.booleans()),
    ),
    max_size=60,
)


class History:
    """One log that lives through the steps."""

    def __init__(self, config: LogConfig, *, cleaned: bool) -> None:
        self.filesystem = MemoryFileSystem()
        self.images: dict[str, ShareStateImage] = {}
        self.log: PartitionLog
        self._config = config
        self._cleaned = cleaned
        self._sequence = 0
        self._produced: bytes | None = None
        """The newest batch of a producer; a repetition of it is recognized."""
        self._epochs = dict.fromkeys(GROUPS, 0)
        self._compacted_offset = 0

    async def run(self, steps: list[tuple[str, Any]]) -> None:
        self.log = await open_log(self.filesystem, config=self._config)
        for name, argument in steps:
            await getattr(self, name)(argument)

    async def records(self, records: list[tuple[bytes, bytes | None]]) -> None:
        append_batch(self.log, keyed_batch(records))

    async def produce(self, records: list[tuple[bytes, bytes | None]]) -> None:
        batch = keyed_batch(records, producer_id=9, producer_epoch=0, base_sequence=self._sequence)
        assert append_batch(self.log, batch).error is None
        self._produced = batch
        self._sequence += len(records)

    async def record_state(self, group_id: str) -> None:
        """A delta on the group's chain, or its first checkpoint."""
        image = self.images.get(group_id)
        if image is None or self.log.high_watermark == 0:
            await self.checkpoint(group_id)
            return
        offset = self.log.control_runs.previous_data_offset(self.log.high_watermark - 1)
        if offset < 0:
            return
        state = StateRange(offset, offset, RecordState.ACKNOWLEDGED, 1, Cause.ACCEPT)
        delta = ShareDelta(group_id, 1, image.checkpoint_epoch, NOW_MS, image.last_control_offset, (state,))
        key, value = encode_delta(delta)
        image.replay_delta(delta, self._append(group_id, ControlType.SHARE_DELTA, key, value))

    async def checkpoint(self, group_id: str, *, deleted: bool = False) -> None:
        image = self.images.setdefault(group_id, ShareStateImage(self.log.control_runs))
        self._epochs[group_id] += 1
        checkpoint: ShareCheckpoint = image.to_checkpoint(
            group_id,
            checkpoint_epoch=self._epochs[group_id],
            decided_at_ms=NOW_MS,
            leader_epoch=0,
            start_offset=None,
            changes=(),
        )._replace(deleted=deleted)
        key, value = encode_checkpoint(checkpoint)
        offset = self._append(group_id, ControlType.SHARE_CHECKPOINT, key, value, tombstone=deleted)
        image.replay_checkpoint(checkpoint, offset)

    async def delete(self, group_id: str) -> None:
        if group_id in self.images:
            await self.checkpoint(group_id, deleted=True)
            del self.images[group_id]

    async def delete_records(self, percent: int) -> None:
        start = self.log.log_start_offset
        self.log.delete_records(start + (self.log.high_watermark - start) * percent // 100)

    async def roll(self, _: None) -> None:
        await roll(self.log)

    async def clean(self, worth: list[bool]) -> None:
        """Cleans the segments in `worth` of their share state, in turn, and those that must be cleaned with
        them.
        """
        await self.log.flush()
        if self._cleaned:
            plan = everything(await self.log.plan_cleaning(self._compacted_offset, NOW_MS))
            some = [one and is_worth for one, is_worth in zip(plan.worth, cycle(worth))]
            cleaned = await self.log.clean(plan._replace(worth=some), NOW_MS)
            assert cleaned is not None
            if cleaned.compacted_offset is not None:
                self._compacted_offset = cleaned.compacted_offset

    async def reopen(self, is_clean: bool) -> None:
        log_start_offset, recovery_point = self.log.log_start_offset, self.log.recovery_point
        await self.log.close(clean=is_clean)
        if not is_clean:
            self.filesystem.files.pop(f"{DIRECTORY}/{SHARE_SNAPSHOT_FILE}", None)
        self.log = await open_log(
            self.filesystem,
            config=self._config,
            log_start_offset=log_start_offset,
            recovery_point=recovery_point,
        )
        self.images = {
            group_id: image for group_id in self.images if (image := self.loaded(group_id)) is not None
        }

    def loaded(self, group_id: str) -> ShareStateImage | None:
        """The group's image, replayed from the log."""
        chain: list[tuple[int, ShareCheckpoint | ShareDelta]] = []
        for entry in self.log.share_records.newest(group_hash(group_id)):
            offset, record = self.log.share_records.read(entry)
            chain.append((offset, record))
            if isinstance(record, ShareCheckpoint):
                return None if record.deleted else self._replayed(chain)
        return None

    def told(self) -> dict[str, Any]:
        """All visible properties of the log."""
        log = self.log
        repeated = None
        if self._produced is not None:
            repeated = append_batch(log, self._produced)
        runs = log.control_runs
        bounds = range(log.log_start_offset, log.log_end_offset)
        return {
            "latest": latest_by_key(records_read(log, log.log_start_offset)),
            "offsets": (log.log_start_offset, log.high_watermark, log.log_end_offset),
            "images": {group_id: _plain(self.loaded(group_id)) for group_id in GROUPS},
            "heads": dict(log.share_records.checkpoint_offsets),
            "data_counts": [runs.data_count(offset, log.log_end_offset - 1) for offset in bounds],
            "next_data": [runs.next_data_offset(offset) for offset in bounds],
            "producer": None
            if repeated is None
            else (repeated.result().base_offset, repeated.result().last_offset),
        }

    def _append(
        self, group_id: str, kind: ControlType, key: bytes, value: bytes, *, tombstone: bool = False
    ) -> int:
        def encode(base_offset: int, leader_epoch: int) -> ControlBatch:
            data = build_control_batch(base_offset, leader_epoch, NOW_MS, key, value)
            return ControlBatch(data, 0, group_id, kind, tombstone)

        appended = append_control(self.log, encode, NOW_MS)
        assert appended.error is None
        return appended.result().base_offset

    def _replayed(self, newest_first: list[tuple[int, ShareCheckpoint | ShareDelta]]) -> ShareStateImage:
        image = ShareStateImage(self.log.control_runs)
        for offset, record in reversed(newest_first):
            if isinstance(record, ShareDelta):
                image.replay_delta(record, offset)
            else:
                image.replay_checkpoint(record, offset)
        return image


def _plain(image: ShareStateImage | None) -> object:
    if image is None:
        return None
    return image.start_offset, image.end_offset, image.checkpoint_epoch, list(image.ranges)


async def _compare(steps: list[tuple[str, Any]], config: LogConfig) -> None:
    cleaned, plain = History(config, cleaned=True), History(config, cleaned=False)
    await cleaned.run(steps)
    await plain.run(steps)
    expected = plain.told()
    assert cleaned.told() == expected
    if not config.compact_enabled:
        assert records_read(cleaned.log, cleaned.log.log_start_offset) == records_read(
            plain.log, plain.log.log_start_offset
        )
    for worth in ([False, True], [True]):
        await cleaned.roll(None)
        await cleaned.clean(worth)
        for is_clean in (True, False):
            await cleaned.reopen(is_clean)
            assert cleaned.told() == expected
    for history in (cleaned, plain):
        await history.log.close()


@settings(max_examples=150)
@given(steps=_STEPS, compacted=st.booleans())
def test_cleaning_changes_nothing_visible(steps: list[tuple[str, Any]], compacted: bool) -> None:
    config = replace(COMPACTED, segment_bytes=600, compact_enabled=compacted)
    asyncio.run(_compare(steps, config))
