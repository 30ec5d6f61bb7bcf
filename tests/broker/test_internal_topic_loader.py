"""A coordinator's partitions are loaded from their logs, and loaded again whatever comes in between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from barnabas.broker.internal_topic import InternalTopic, share_state_topic
from barnabas.broker.internal_topic_loader import InternalTopicLoader
from barnabas.coordinator.runtime.interfaces import Stored, StoredRecord
from barnabas.protocol.varint import RecordFormatError
from barnabas.storage.errors import InvalidDirectory, LogOffline
from tests.conformance.harness import Lab, open_lab, settle

PARTITION_COUNT = 3


class Coordinator:
    """What was loaded; records with the key `damaged` cannot be, as often as `damage_count` says."""

    def __init__(self, lab: Lab) -> None:
        spec = share_state_topic(PARTITION_COUNT, 1 << 20)
        self.topic = InternalTopic(spec, lab.broker.metadata, lab.broker.logs, lab.clock)
        self.loaded: dict[int, list[bytes | None]] = {}
        self.damage_count = 1
        self.reload_count = 0
        self.loader = InternalTopicLoader(
            self.topic,
            lab.broker.log_directory,
            partition_count=PARTITION_COUNT,
            load=self.load,
            unload=self.unload,
            on_reloaded=self.on_reloaded,
        )

    def load(self, partition: int, records: Sequence[Stored]) -> None:
        assert partition not in self.loaded, "unloaded before"
        keys: list[bytes | None] = []
        self.loaded[partition] = keys
        for record in records:
            assert isinstance(record, StoredRecord)
            keys.append(record.key)
            if record.key == b"damaged" and self.damage_count:
                self.damage_count -= 1
                raise RecordFormatError("It makes no sense.")

    def unload(self, partition: int) -> None:
        self.loaded.pop(partition, None)

    def on_reloaded(self) -> None:
        self.reload_count += 1


@pytest.fixture
async def coordinator(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Coordinator]:
    monkeypatch.setattr("barnabas.broker.internal_topic_loader._PAUSE_SECONDS", 0)
    async with open_lab() as lab:
        yield Coordinator(lab)


async def test_every_partition_is_loaded_whether_it_has_a_log_or_not(coordinator: Coordinator) -> None:
    await coordinator.topic.append(1, [(b"a", b""), (b"b", None)])
    await coordinator.loader.load()
    assert coordinator.loaded == {0: [], 1: [b"a", b"b"], 2: []}
    assert coordinator.reload_count == 0


async def test_a_damaged_record_stops_the_start_and_is_told_with_its_place(coordinator: Coordinator) -> None:
    await coordinator.topic.append(1, [(b"damaged", b"")])
    with pytest.raises(InvalidDirectory, match="__share_group_state-1 is damaged: It makes no sense"):
        await coordinator.loader.load()


async def test_what_was_loaded_is_forgotten_at_once_and_loaded_soon(coordinator: Coordinator) -> None:
    await coordinator.loader.load()
    await coordinator.topic.append(0, [(b"a", b"")])
    coordinator.loader.reload(0)
    assert coordinator.loaded == {1: [], 2: []}
    await settle()
    assert coordinator.loaded == {0: [b"a"], 1: [], 2: []}
    assert coordinator.reload_count == 1


async def test_what_a_failed_attempt_has_loaded_is_forgotten_before_the_next(
    coordinator: Coordinator,
) -> None:
    await coordinator.topic.append(0, [(b"a", b""), (b"damaged", b""), (b"b", b"")])
    coordinator.loader.reload(0)
    await settle()
    assert coordinator.damage_count == 0
    assert coordinator.loaded == {0: [b"a", b"damaged", b"b"]}
    assert coordinator.reload_count == 1


async def test_a_log_that_is_opened_anew_while_it_is_read_is_read_again_and_loaded_once(
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


async def test_nothing_is_loaded_any_more_once_it_is_closed(
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
