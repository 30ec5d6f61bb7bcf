"""A crash at any moment while decisions, snapshots and the log start are written, with any loss of unsynced
data: the next start has all confirmed decisions, and nothing that was not decided.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.coordinator.metadata.config_decisions import ResourceChange, SettingChange
from barnabas.coordinator.metadata.controller import Controller
from barnabas.coordinator.metadata.image import ConfigResource, MetadataImage, ResourceType
from barnabas.coordinator.metadata.metadata_log import MetadataLog
from barnabas.coordinator.metadata.snapshot_files import SnapshotFiles
from barnabas.coordinator.metadata.snapshot_settings import SnapshotSettings
from barnabas.coordinator.metadata.topic_decisions import NewTopic
from barnabas.coordinator.metadata.topic_names import METADATA_TOPIC, METADATA_TOPIC_ID
from barnabas.protocol.metadata_records import MetadataRecord
from barnabas.storage.directory.log_directory import LogDirectory
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log_config import LogConfig
from tests.coordinator.metadata.metadata_fakes import NODE, HandClock, PlainRules, counted_ids, settle
from tests.storage.stepped_filesystem import Crash, SteppedFileSystem

DIRECTORY = "/data"
LOG_DIRECTORY = f"{DIRECTORY}/{METADATA_TOPIC}-0"
LOG_CONFIG = LogConfig(segment_bytes=3_000, retention_ms=-1, flush_messages=1)
OFTEN = SnapshotSettings(record_bytes=1_500, cleanable_ratio=0)


class Node:
    """The metadata of one node on a stepped disk, as `broker/node/metadata_opening.py` opens it."""

    def __init__(self, filesystem: SteppedFileSystem, clock: HandClock) -> None:
        self.filesystem = filesystem
        self.clock = clock
        self.directory: LogDirectory
        self.log: MetadataLog

    async def open(self) -> None:
        """Raises the error that stops a start."""
        self.directory = await LogDirectory.open(
            self.filesystem, DIRECTORY, node_id=1, wall_ms=self.clock.wall_ms
        )
        store = await self.directory.log(METADATA_TOPIC, 0, METADATA_TOPIC_ID, LOG_CONFIG, leader_epoch=0)
        snapshots = SnapshotFiles(self.filesystem, store.directory)
        self.log = MetadataLog(store, snapshots, OFTEN, clock=self.clock, start_over=self._start_over)

    async def _start_over(self, offset: int) -> PartitionLog:
        return await self.directory.start_over(
            METADATA_TOPIC, 0, METADATA_TOPIC_ID, LOG_CONFIG, offset=offset
        )

    def controller(self) -> Controller:
        ids = counted_ids()
        return Controller(
            NODE,
            self.log,
            PlainRules(),
            image=MetadataImage(),
            default_partition_count=1,
            new_id=lambda: next(ids),
            wall_ms=self.clock.wall_ms,
        )


async def found_after(crash: Crash) -> list[MetadataRecord]:
    """The image that the next start loads."""
    node = Node(crash.filesystem(), HandClock())
    await node.open()
    image = MetadataImage()
    try:
        await node.log.load(image)
    finally:
        await node.directory.close(clean=False)
    return list(image.to_records())


class Witness:
    """The image after each decision, and which decisions were confirmed."""

    def __init__(self) -> None:
        self.history: list[list[MetadataRecord]] = [[]]

    def confirmed_count(self) -> int:
        return len(self.history) - 1

    async def check(self, crashes: Sequence[Crash]) -> None:
        """Each crash leaves the confirmed decisions, or one more that was under way."""
        for crash in crashes:
            confirmed = crash.note
            assert isinstance(confirmed, int)
            found = await found_after(crash)
            assert found in self.history[confirmed : confirmed + 2], crash.step


async def decide(controller: Controller, number: int) -> None:
    """One decision, of one kind or another."""
    match number % 4:
        case 0 | 1:
            await controller.create_topics([NewTopic(f"t{number}", 6)])
        case 2:
            change = SettingChange("retention.ms", 0, str(number))
            resource = ConfigResource(ResourceType.TOPIC, f"t{number - 1}")
            await controller.alter_configs([ResourceChange(resource, [change])])
        case _:
            await controller.delete_topics([controller.image.topics_by_name[f"t{number - 3}"].topic_id])


async def test_a_crash_at_any_step_leaves_the_confirmed_decisions() -> None:
    filesystem, witness = SteppedFileSystem(), Witness()
    filesystem.note = witness.confirmed_count
    node = Node(filesystem, HandClock())
    await node.open()
    controller = node.controller()
    await controller.start()
    witness.history.append(list(controller.image.to_records()))
    filesystem.crashes.clear()  # Before the first record there is nothing to lose.
    for number in range(24):
        await decide(controller, number)
        witness.history.append(list(controller.image.to_records()))
        await settle()
        await node.directory.retain()
        await node.directory.flush(high_watermarks=True)
    assert node.log.store.log_start_offset > 0
    assert f"{LOG_DIRECTORY}/{0:020d}.log" not in filesystem.files, "segments have gone"
    await controller.close()
    await node.directory.close()
    await witness.check(filesystem.crashes)


async def test_a_crash_while_the_log_starts_over_leaves_the_content_of_the_snapshot() -> None:
    filesystem, witness = SteppedFileSystem(), Witness()
    node = Node(filesystem, HandClock())
    await node.open()
    controller = node.controller()
    await controller.start()
    for number in range(2):
        await decide(controller, number)
    await controller.close()
    await node.directory.close()
    whole = list(controller.image.to_records())
    del filesystem.files[f"{LOG_DIRECTORY}/{0:020d}.log"][300:]
    left = Crash(
        "", None, {path: bytes(data) for path, data in filesystem.files.items()}, filesystem.directories
    )
    damaged = left.filesystem()
    damaged.note = lambda: 1
    witness.history = [[], whole]
    again = Node(damaged, HandClock())
    await again.open()
    image = MetadataImage()
    await again.log.load(image)
    assert list(image.to_records()) == whole
    assert again.log.store.log_start_offset == again.log.store.log_end_offset > 0
    await again.directory.close()
    assert len(damaged.crashes) > 20
    await witness.check(damaged.crashes)
