"""A coordinator's partitions are loaded from their logs, and loaded again after any fault."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from itertools import pairwise

import pytest

from barnabas.broker.internal_topics.coordinator_topic import BrokerParts, CoordinatorTopic
from barnabas.broker.internal_topics.internal_topic import InternalTopic
from barnabas.broker.internal_topics.internal_topics import share_state_topic
from barnabas.coordinator.replay.interfaces import Stored, StoredRecord
from barnabas.protocol.varint import RecordFormatError
from barnabas.runtime.turns import STEPS_PER_TURN
from barnabas.storage.errors import CorruptBatch, InvalidDirectory, LogOffline
from tests.conformance.harness import DATA_DIRECTORY, Lab, open_lab, settle

PARTITION_COUNT = 3


class Coordinator:
    """The records that were loaded. Records with the key `damaged` cannot be loaded `damage_count` times."""

    def __init__(self, lab: Lab) -> None:
        spec = share_state_topic(lab.broker.config)._replace(partition_count=PARTITION_COUNT)
        self.topic = InternalTopic(spec, lab.broker.metadata, lab.broker.logs, lab.clock)
        self.loaded: dict[int, list[bytes | None]] = {}
        self.open: set[int] = set()
        self.damage_count = 1
        self.partition_count = PARTITION_COUNT
        broker = lab.broker
        self.loader = CountingTopic(
            self.topic,
            self,
            BrokerParts(
                broker.config,
                broker.metadata,
                broker.logs,
                broker.log_directory,
                broker.clock,
                broker.deadlines,
            ),
        )

    @property
    def reload_count(self) -> int:
        return self.loader.reload_count

    def load(self, partition: int, records: Sequence[Stored]) -> Iterator[None]:
        assert partition not in self.loaded, "unloaded before"
        keys: list[bytes | None] = []
        self.loaded[partition] = keys
        for record in records:
            assert isinstance(record, StoredRecord)
            keys.append(record.key)
            if record.key == b"damaged" and self.damage_count:
                self.damage_count -= 1
                raise RecordFormatError("It makes no sense.")
            yield
        self.open.add(partition)

    def unload(self, partition: int) -> None:
        self.loaded.pop(partition, None)
        self.open.discard(partition)

    def resize(self, partition_count: int) -> None:
        self.partition_count = partition_count


class CountingTopic(CoordinatorTopic):
    """Counts the partitions that were loaded later than the others."""

    reload_count = 0

    def _on_loaded(self) -> None:
        self.reload_count += 1


@pytest.fixture
async def coordinator(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Coordinator]:
    for pause in ("_PAUSE_SECONDS", "_DAMAGED_PAUSE_SECONDS"):
        monkeypatch.setattr(f"barnabas.broker.internal_topics.coordinator_topic.{pause}", 0)
    async with open_lab() as lab:
        yield Coordinator(lab)


async def test_every_partition_is_loaded_whether_it_has_a_log_or_not(coordinator: Coordinator) -> None:
    await coordinator.topic.append(1, [(b"a", b""), (b"b", None)])
    await coordinator.loader.load()
    assert coordinator.loaded == {0: [], 1: [b"a", b"b"], 2: []}
    assert coordinator.reload_count == 0


async def test_a_partition_that_cannot_be_loaded_keeps_no_other_from_it_and_is_tried_again(
    coordinator: Coordinator, capsys: pytest.CaptureFixture[str]
) -> None:
    await coordinator.topic.append(0, [(b"a", b"")])
    await coordinator.topic.append(1, [(b"damaged", b"")])
    coordinator.damage_count = 3
    await coordinator.loader.load()
    assert coordinator.loaded == {0: [b"a"], 2: []}
    await settle()
    assert coordinator.damage_count == 0
    assert coordinator.loaded == {0: [b"a"], 1: [b"damaged"], 2: []}
    assert coordinator.reload_count == 1
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "partition not loaded" in line]
    assert "__share_group_state-1 is damaged: It makes no sense" in line
    assert f"barnabas log dump --records {DATA_DIRECTORY}/__share_group_state-1" in line


async def test_another_reason_is_logged_again(
    coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reasons = [LogOffline("one"), LogOffline("one"), CorruptBatch("two"), LogOffline("one")]
    read = InternalTopic.read

    async def failing(topic: InternalTopic, partition: int) -> list[Stored]:
        if reasons:
            raise reasons.pop(0)
        return await read(topic, partition)

    await coordinator.topic.append(0, [(b"a", b"")])
    monkeypatch.setattr(InternalTopic, "read", failing)
    await coordinator.loader.load()
    await settle()
    assert coordinator.loaded[0] == [b"a"]
    told = [line for line in capsys.readouterr().out.splitlines() if "partition not loaded" in line]
    assert [("one" in line, "drop-damaged" in line) for line in told] == [
        (True, False),
        (False, True),
        (True, False),
    ]


async def test_the_pauses_before_a_damaged_partition_is_tried_again_grow_up_to_an_hour(
    coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    await coordinator.topic.append(0, [(b"damaged", b"")])
    coordinator.damage_count = 9
    pauses: list[float] = []
    sleep = asyncio.sleep

    async def note(seconds: float) -> None:
        if seconds:
            pauses.append(seconds)
        await sleep(0)

    monkeypatch.undo()
    monkeypatch.setattr(asyncio, "sleep", note)
    await coordinator.loader.load()
    while coordinator.damage_count or not coordinator.reload_count:
        await sleep(0)
    assert pauses == [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]


async def test_load_all_fails_if_one_partition_is_damaged(coordinator: Coordinator) -> None:
    await coordinator.topic.append(1, [(b"damaged", b"")])
    with pytest.raises(InvalidDirectory, match="__share_group_state-1 is damaged: It makes no sense"):
        await coordinator.loader.load_all()


async def test_a_reload_forgets_at_once_and_loads_soon(coordinator: Coordinator) -> None:
    await coordinator.loader.load()
    await coordinator.topic.append(0, [(b"a", b"")])
    coordinator.loader.reload(0)
    assert coordinator.loaded == {1: [], 2: []}
    await settle()
    assert coordinator.loaded == {0: [b"a"], 1: [], 2: []}
    assert coordinator.reload_count == 1


async def test_the_records_of_a_failed_attempt_are_forgotten_before_the_next(
    coordinator: Coordinator,
) -> None:
    await coordinator.topic.append(0, [(b"a", b""), (b"damaged", b""), (b"b", b"")])
    coordinator.loader.reload(0)
    await settle()
    assert coordinator.damage_count == 0
    assert coordinator.loaded == {0: [b"a", b"damaged", b"b"]}
    assert coordinator.reload_count == 1


async def test_a_log_reopened_while_it_is_read_is_read_again_and_loaded_once(
    coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[asyncio.Future[list[Stored]]] = []

    async def read(_: InternalTopic, __: int) -> list[Stored]:
        reads.append(asyncio.get_running_loop().create_future())
        return await reads[-1]

    monkeypatch.setattr(InternalTopic, "read", read)
    for count in (1, 2):
        coordinator.loader.reload(0)
        await settle()
        assert len(reads) == count
    for number, answer in enumerate(reads):
        if not answer.done():
            answer.set_result([StoredRecord(0, f"read {number}".encode(), b"")])
    await settle()
    assert (coordinator.loaded, coordinator.reload_count) == ({0: [b"read 1"]}, 1)


async def test_nothing_is_loaded_after_closing(
    coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unreadable(_: InternalTopic, __: int) -> list[Stored]:
        raise LogOffline("the disk is gone")

    with monkeypatch.context() as patch:
        patch.setattr(InternalTopic, "read", unreadable)
        coordinator.loader.reload(0)
        coordinator.loader.reload(1)
        await settle()
        assert coordinator.loaded == {}
    await coordinator.loader.close()
    await settle()
    assert coordinator.loaded == {}


RECORD_COUNT = 2 * STEPS_PER_TURN
"""More than are replayed in a few turns."""
PASSES_MAX = 1_000


async def began_to_load(coordinator: Coordinator) -> None:
    """Partition 0 holds much, and was opened anew: return when some of it is loaded, but not all."""
    await coordinator.topic.append(0, [(b"%d" % number, b"") for number in range(RECORD_COUNT)])
    coordinator.loader.reload(0)
    await until(lambda: bool(coordinator.loaded.get(0)))
    assert 0 not in coordinator.open


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(PASSES_MAX):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("nothing happens any more")


async def test_others_are_served_while_a_partition_is_loaded(coordinator: Coordinator) -> None:
    await began_to_load(coordinator)
    counts = [0]

    def is_loaded() -> bool:
        counts.append(len(coordinator.loaded[0]))
        return 0 in coordinator.open

    await until(is_loaded)
    steps = [after - before for before, after in pairwise(counts)]
    assert sum(steps) == RECORD_COUNT
    assert max(steps) <= STEPS_PER_TURN // 4


async def test_a_log_reopened_while_it_is_loaded_is_loaded_again(coordinator: Coordinator) -> None:
    await began_to_load(coordinator)
    coordinator.loader.reload(0)
    assert coordinator.loaded == {}
    await until(lambda: 0 in coordinator.open)
    assert len(coordinator.loaded[0]) == RECORD_COUNT
    await settle()
    assert coordinator.reload_count == 1


async def test_closing_forgets_a_partly_loaded_partition(coordinator: Coordinator) -> None:
    await began_to_load(coordinator)
    await coordinator.loader.close()
    assert coordinator.loaded == {}
