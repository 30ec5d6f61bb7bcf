"""For any work of producers and any crash, readers of committed records get exactly the committed records.

Random interleavings of producers, commits, aborts, share state, flushes and crashes, from a seed. The model
is the list of all appends, searched from its beginning for every query.
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from barnabas.storage.log.appended import Appended
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log_config import FlushPolicy, LogConfig, StorageConfig
from tests.storage.cleaner.crashing_filesystem import CrashingFileSystem
from tests.storage.log_building import DIRECTORY, append, append_deltas, open_log
from tests.storage.memory_filesystem import MemoryFileSystem
from tests.storage.transactions import Producer, committed_read

PRODUCERS = range(1, 5)
CONFIGS = st.builds(
    LogConfig, segment_bytes=st.sampled_from([150, 700, 10_000]), index_interval_bytes=st.just(100)
)


CRASHES_LOOKED_AT = 15
"""The length of each random history."""


class Entry(NamedTuple):
    """A batch of the log; `commit` is None except for markers, `producer_id` is 0 outside transactions."""

    base_offset: int
    last_offset: int
    is_state: bool = False
    producer_id: int = 0
    commit: bool | None = None


class Model:
    """All appends, in the order of the log."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.log_start_offset = 0

    def add(self, appended: Appended, *, producer_id: int = 0, is_state: bool = False) -> None:
        self.entries.append(Entry(appended.base_offset, appended.last_offset, is_state, producer_id))

    def add_marker(self, appended: Appended, producer_id: int, *, commit: bool) -> None:
        self.add(appended, producer_id=producer_id)
        self.entries[-1] = self.entries[-1]._replace(commit=commit)

    def truncate_to(self, log_end_offset: int) -> None:
        self.entries = [entry for entry in self.entries if entry.last_offset < log_end_offset]

    @property
    def high_watermark(self) -> int:
        ends = [entry.last_offset + 1 for entry in self.entries if not entry.is_state]
        return max([*ends, self.log_start_offset])

    def open(self) -> dict[int, int]:
        """The first offset of each open transaction, by producer id."""
        first_offsets: dict[int, int] = {}
        for entry in self.entries:
            if entry.commit is not None:
                first_offsets.pop(entry.producer_id, None)
            elif entry.producer_id:
                first_offsets.setdefault(entry.producer_id, entry.base_offset)
        return first_offsets

    def aborted(self) -> list[tuple[int, int, int]]:
        """(producer id, first offset, offset of the marker), in the order of the markers."""
        return [
            (producer_id, first_offset, last_offset)
            for producer_id, first_offset, last_offset, commit in self._ended()
            if not commit
        ]

    def _ended(self) -> list[tuple[int, int, int, bool]]:
        ended: list[tuple[int, int, int, bool]] = []
        for number, entry in enumerate(self.entries):
            before = Model()
            before.entries = self.entries[:number]
            first_offset = before.open().get(entry.producer_id)
            if entry.commit is not None and first_offset is not None:
                ended.append((entry.producer_id, first_offset, entry.last_offset, entry.commit))
        return ended

    @property
    def last_stable_offset(self) -> int:
        first_unstable = min(self.open().values(), default=None)
        if first_unstable is None:
            return self.high_watermark
        ends = [
            entry.last_offset + 1
            for entry in self.entries
            if not entry.is_state and entry.base_offset < first_unstable
        ]
        return max([*ends, self.log_start_offset])

    def committed(self) -> list[int]:
        """The base offsets of the data that a committed reader may see from the log start on."""
        aborted, stable = self.aborted(), self.last_stable_offset
        return [
            entry.base_offset
            for entry in self.entries
            if not entry.is_state
            and entry.commit is None
            and entry.last_offset >= self.log_start_offset
            and entry.last_offset < stable
            and not any(
                producer_id == entry.producer_id and first <= entry.base_offset < last
                for producer_id, first, last in aborted
            )
        ]


class History:
    """One log and its model through random steps."""

    def __init__(self, random: Random, config: LogConfig, storage: StorageConfig) -> None:
        self.random = random
        self.filesystem: MemoryFileSystem = MemoryFileSystem()
        self.model = Model()
        self.log: PartitionLog
        self._config = config
        self._storage = storage
        self._producers: dict[int, Producer] = {}

    async def start(self, recovery_point: int = 0) -> None:
        await self._open(self.filesystem, recovery_point=recovery_point)

    async def run(self, step_count: int) -> None:
        await self.start()
        steps = [self.send] * 6 + [self.end] * 4 + [self.append] * 2 + [self.append_state]
        rare = [self.flush, self.delete_records, self.kill, self.lose_power, self.close]
        for _ in range(step_count):
            await self.random.choice(steps if self.random.random() < 0.8 else rare)()
            self.check()

    async def send(self) -> None:
        producer = self._producers[self.random.choice(PRODUCERS)]
        appended = await producer.send(self.random.randint(1, 3))
        self.model.add(appended, producer_id=producer.producer_id)

    async def end(self) -> None:
        producer = self._producers[self.random.choice(PRODUCERS)]
        commit = self.random.random() < 0.4
        appended = await producer.end(commit=commit, transaction_version=self.random.choice([0, 2]))
        self.model.add_marker(appended, producer.producer_id, commit=commit)

    async def append(self) -> None:
        self.model.add(await append(self.log, self.random.randint(1, 3)))

    async def append_state(self) -> None:
        self.model.add(await append_deltas(self.log, self.random.randint(1, 3)), is_state=True)

    async def flush(self) -> None:
        await self.log.flush()

    async def delete_records(self) -> None:
        """Deletes records and the segments below; the checkpoint is durable before files are removed."""
        offset = self.random.randint(self.log.log_start_offset, self.log.high_watermark)
        self.model.log_start_offset = max(self.model.log_start_offset, self.log.delete_records(offset))
        await self.log.flush()
        await self.log.enforce_retention(0)

    async def kill(self) -> None:
        await self._open(self.filesystem.copy(), recovery_point=self._checkpointed())

    async def lose_power(self) -> None:
        await self._open(self.filesystem.after_power_loss(), recovery_point=self._checkpointed())
        self.model.truncate_to(self.log.log_end_offset)

    async def close(self) -> None:
        await self.log.close()
        await self._open(self.filesystem, recovery_point=self.log.recovery_point)

    def check(self) -> None:
        log, model, random = self.log, self.model, self.random
        assert log.high_watermark == model.high_watermark
        assert log.last_stable_offset == model.last_stable_offset
        assert committed_read(log, log.log_start_offset, bytes_max=random.choice([1, 300, 10_000])) == (
            model.committed()
        )
        first = random.randint(log.log_start_offset, log.log_end_offset)
        upper = random.randint(first, log.log_end_offset)
        found = log.aborted_transactions(first, upper)
        assert [one[:3] for one in found] == [
            one for one in model.aborted() if one[2] >= first and one[1] < upper
        ]

    def _checkpointed(self) -> int:
        """The recovery point on the disk may be an older one than the log's."""
        return self.random.choice([self.log.recovery_point, self.log.recovery_point // 2])

    async def _open(self, filesystem: MemoryFileSystem, *, recovery_point: int) -> None:
        self.filesystem = filesystem
        self.log = await open_log(
            filesystem,
            config=self._config,
            storage=self._storage,
            recovery_point=recovery_point,
            log_start_offset=self.model.log_start_offset,
        )
        for producer_id in PRODUCERS:
            self._producers[producer_id] = self._resumed(producer_id)

    def _resumed(self, producer_id: int) -> Producer:
        """The producer, which continues from its entry in the log."""
        producer = Producer(self.log, producer_id)
        for known in self.log.active_producers():
            if known.producer_id == producer_id:
                producer.producer_epoch = known.producer_epoch
                producer.sequence = known.last_sequence + 1
        return producer


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32), config=CONFIGS, flush=st.sampled_from(FlushPolicy))
async def test_any_history_is_read_as_it_was_written(
    seed: int, config: LogConfig, flush: FlushPolicy
) -> None:
    history = History(Random(seed), config, StorageConfig(flush=flush))
    await history.run(50)


@settings(max_examples=10)
@given(seed=st.integers(0, 2**32), config=CONFIGS)
async def test_a_crash_at_any_operation_of_a_flush_leaves_all_written_records(
    seed: int, config: LogConfig
) -> None:
    filesystem = CrashingFileSystem()
    history = History(Random(seed), config, StorageConfig())
    history.filesystem = filesystem
    await history.start()
    steps = [history.send] * 3 + [history.end] * 2 + [history.append]
    for _ in range(12):
        await history.random.choice(steps)()
    await history.log.close()
    filesystem.watch()  # records only files that are opened from now on
    recovery_point = history.log.recovery_point
    await history.start(recovery_point)
    for _ in range(8):
        await history.random.choice(steps)()
    await history.log.flush()
    filesystem.crash_here()
    outcomes = list(filesystem.left_by_crashes())
    for left in history.random.sample(outcomes, min(len(outcomes), CRASHES_LOOKED_AT)):
        log = await open_log(left, config=config, recovery_point=recovery_point)
        assert log.log_end_offset >= recovery_point
        model = Model()
        model.entries = list(history.model.entries)
        model.truncate_to(log.log_end_offset)
        assert log.last_stable_offset == model.last_stable_offset
        assert committed_read(log) == model.committed()
        assert [one[:3] for one in log.aborted_transactions(0, log.log_end_offset)] == model.aborted()
        await log.close()


@settings(max_examples=25)
@example(seed=2, config=LogConfig(segment_bytes=700, index_interval_bytes=100))
@example(seed=8, config=LogConfig(segment_bytes=150, index_interval_bytes=100))
@given(seed=st.integers(0, 2**32), config=CONFIGS)
async def test_a_log_without_its_snapshots_and_with_spoilt_indexes_is_read_the_same(
    seed: int, config: LogConfig
) -> None:
    history = History(Random(seed), config, StorageConfig())
    await history.run(25)
    await history.log.close()
    # A transaction whose data was deleted is known from snapshots alone.
    assume(all(offset >= history.log.log_start_offset for offset in history.model.open().values()))
    filesystem, random = history.filesystem, history.random
    for path in [path for path in filesystem.files if path.startswith(DIRECTORY)]:
        if path.endswith(".txnindex") and random.random() < 0.5:
            del filesystem.files[path][-1:]
        if path.endswith(".snapshot") and random.random() < 0.5:
            filesystem.files[path][-1] ^= 1
    log = await open_log(
        filesystem,
        config=config,
        recovery_point=history.log.recovery_point,
        log_start_offset=history.model.log_start_offset,
    )
    assert committed_read(log, log.log_start_offset) == history.model.committed()
