"""The worked table of KIP-932's draft "Recovery and log cleaning", as bytes of a log: G1's records 100 to 120
lie in a log of 130 records, and its control records are 130 to 137.

A leader plays the history, the control records are decoded from the log file itself, and after each of them
the log is opened from a copy of its files, as after a crash. Where the log differs from the table:

- - The table's checkpoint begins at 110, although 100 to 109 are acknowledged after it. Here it begins at
  100.
- - The records have more fields (docs/decisions/0001): the log also has the member and the cause of a state.
- - The table's checkpoint epoch has 16 bits, and its delta no version. Here the epoch has 32 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import TypeAlias

import pytest

from barnabas.protocol.control_record import ShareCheckpoint, ShareDelta, decode_control_record
from barnabas.protocol.decode.acknowledgements import AckBatch
from barnabas.protocol.delivery_state import RecordState
from barnabas.protocol.record_batch import CONTROL_FLAG, iterate_headers
from barnabas.protocol.records import iterate_records
from barnabas.share.leader.share_partition_leader import NOTHING_TO_RECORD
from barnabas.storage.format.share_image import ShareStateImage
from tests.share.leader.leading import LOCK_MS, Leading, acknowledge, acknowledge_batches, leading
from tests.storage.log_building import DIRECTORY, headers_of
from tests.storage.memory_filesystem import MemoryFileSystem

ACCEPT, RELEASE, RENEW = 1, 2, 4
AVAILABLE, ACKNOWLEDGED = RecordState.AVAILABLE, RecordState.ACKNOWLEDGED
LOG_FILE = f"{DIRECTORY}/00000000000000000000.log"

State: TypeAlias = tuple[int, int, RecordState, int]
"""First and last offset, state, delivery count: the table's tuple."""

DELTAS: list[tuple[int, int, list[State]]] = [
    # offset, back offset, states
    (131, 130, [(100, 109, ACKNOWLEDGED, 1)]),
    (132, 131, [(110, 110, AVAILABLE, 1)]),
    (133, 132, [(111, 118, AVAILABLE, 0), (119, 119, ACKNOWLEDGED, 1)]),
    (134, 133, [(111, 112, AVAILABLE, 1)]),
    (135, 134, [(113, 118, ACKNOWLEDGED, 1)]),
    (136, 135, [(110, 110, ACKNOWLEDGED, 2)]),
    (137, 136, [(111, 112, ACKNOWLEDGED, 2)]),
]

RECOVERED: list[tuple[int, int, int, list[State]]] = [
    # newest control record, recovered SPSO and SPEO, states between them
    (130, 100, 100, []),
    (131, 110, 110, []),
    (132, 110, 111, [(110, 110, AVAILABLE, 1)]),
    (133, 110, 120, [(110, 110, AVAILABLE, 1), (111, 118, AVAILABLE, 0), (119, 119, ACKNOWLEDGED, 1)]),
    (
        134,
        110,
        120,
        [(110, 112, AVAILABLE, 1), (113, 118, AVAILABLE, 0), (119, 119, ACKNOWLEDGED, 1)],
    ),
    (135, 110, 120, [(110, 112, AVAILABLE, 1), (113, 119, ACKNOWLEDGED, 1)]),
    (136, 111, 120, [(111, 112, AVAILABLE, 1), (113, 119, ACKNOWLEDGED, 1)]),
    (137, 120, 120, []),
]


def states_of(image: ShareStateImage) -> list[State]:
    return [one[:4] for one in image.ranges]


def control_records(filesystem: MemoryFileSystem) -> list[tuple[int, ShareCheckpoint | ShareDelta]]:
    """The control records in the bytes of the log file, with their offsets; no index is read."""
    data = bytes(filesystem.files[LOG_FILE])
    found: list[tuple[int, ShareCheckpoint | ShareDelta]] = []
    for position, header in iterate_headers(data):
        if header.attributes & CONTROL_FLAG:
            (record,) = iterate_records(data, position)
            decoded = decode_control_record(record.key, record.value)
            assert decoded is not None
            found.append((record.offset, decoded))
    return found


class Played:
    """The table's history on a log, and the log's files after each of its control records, by offset."""

    def __init__(self, stage: Leading) -> None:
        self.stage = stage
        self.files: dict[int, MemoryFileSystem] = {}
        stage.groups.incarnations["G1"] = 1
        stage.produce(100, 10, 10, 1, 9)
        leader = stage.share_partitions.lead(stage.key("G1"), stage.log)
        assert leader is not None
        self.leader = leader
        leader.start.begin_at(100)
        self._keep_files()

    @property
    def bounds(self) -> tuple[int, int]:
        return self.leader.core.spso, self.leader.core.speo

    def fetch(self, records_max: int, *acquired: tuple[int, int, int]) -> None:
        assert list(self.stage.fetch(self.leader, records_max).acquired) == list(acquired)

    def acknowledge(self, first_offset: int, last_offset: int, kind: int) -> None:
        assert acknowledge(self.leader, first_offset, last_offset, kind).done
        self._keep_files()

    def renew(self, first_offset: int, last_offset: int) -> None:
        batches = [AckBatch(first_offset, last_offset, (RENEW,))]
        assert acknowledge_batches(self.leader, "member", batches) is NOTHING_TO_RECORD

    def pass_time(self, ms: int) -> None:
        self.stage.timers.advance(ms)
        self._keep_files()

    def _keep_files(self) -> None:
        newest_offset = control_records(self.stage.filesystem)[-1][0]
        self.files[newest_offset] = self.stage.filesystem.copy()


async def play(*, deltas_per_checkpoint: int = 500) -> Played:
    """Every row of the table; the SPSO and SPEO of its third column are checked on the way."""
    played = Played(await leading(deltas_per_checkpoint=deltas_per_checkpoint))
    assert played.bounds == (100, 100)
    played.fetch(10, (100, 109, 1))
    assert played.bounds == (100, 110)
    played.acknowledge(100, 109, ACCEPT)
    assert played.bounds == (110, 110)
    played.fetch(10, (110, 119, 1))
    assert played.bounds == (110, 120)
    played.acknowledge(110, 110, RELEASE)
    played.acknowledge(119, 119, ACCEPT)
    played.pass_time(LOCK_MS - 100)
    played.fetch(2, (110, 110, 2), (120, 120, 1))
    assert played.bounds == (110, 121)
    played.renew(113, 118)
    played.pass_time(100)
    assert played.bounds == (110, 121)
    played.acknowledge(113, 118, ACCEPT)
    played.fetch(2, (111, 112, 2))
    played.acknowledge(110, 110, ACCEPT)
    assert played.bounds == (111, 121)
    played.acknowledge(111, 112, ACCEPT)
    assert played.bounds == (120, 121)
    return played


async def recovered(filesystem: MemoryFileSystem) -> Leading:
    """Another broker on the files after a crash."""
    again = await leading(filesystem.copy())
    again.groups.incarnations["G1"] = 1
    return again


def image_of(stage: Leading) -> ShareStateImage:
    leader = stage.share_partitions.lead(stage.key("G1"), stage.log)
    assert leader is not None
    return leader.image


def as_it_is(files: dict[str, bytearray]) -> None:
    """Leaves the files as after a crash."""


def without_share_indexes(files: dict[str, bytearray]) -> None:
    paths = [one for one in files if one.endswith((".shareindex", "share-snapshot"))]
    assert paths
    for path in paths:
        del files[path]


def with_the_log_alone(files: dict[str, bytearray]) -> None:
    for path in [one for one in files if one != LOG_FILE]:
        del files[path]


async def test_the_control_records_in_the_log_are_those_of_the_table() -> None:
    played = await play()
    (offset, checkpoint), *rest = control_records(played.stage.filesystem)
    assert isinstance(checkpoint, ShareCheckpoint)
    assert (offset, checkpoint.group_id, checkpoint.checkpoint_epoch) == (130, "G1", 1)
    assert (checkpoint.start_offset, checkpoint.end_offset, checkpoint.states) == (100, 100, ())
    deltas: list[tuple[int, int, list[State]]] = []
    for offset, delta in rest:
        assert isinstance(delta, ShareDelta)
        assert (delta.group_id, delta.checkpoint_epoch) == ("G1", 1)
        deltas.append((offset, delta.back_offset, [one[:4] for one in delta.states]))
    assert deltas == DELTAS


async def test_the_last_row_may_be_a_checkpoint_of_the_next_epoch() -> None:
    played = await play(deltas_per_checkpoint=6)
    offset, checkpoint = control_records(played.stage.filesystem)[-1]
    assert isinstance(checkpoint, ShareCheckpoint)
    assert (offset, checkpoint.group_id, checkpoint.checkpoint_epoch) == (137, "G1", 2)
    assert (checkpoint.start_offset, checkpoint.end_offset, checkpoint.states) == (120, 120, ())


@pytest.mark.parametrize("damage", [as_it_is, without_share_indexes, with_the_log_alone])
async def test_each_row_is_recovered_from_the_files_of_a_crash(
    damage: Callable[[dict[str, bytearray]], None],
) -> None:
    played = await play()
    assert [newest for newest, *_ in RECOVERED] == sorted(played.files)
    for newest_offset, spso, speo, states in RECOVERED:
        files = played.files[newest_offset].copy()
        damage(files.files)
        image = image_of(await recovered(files))
        assert (image.start_offset, image.end_offset) == (spso, speo)
        assert states_of(image) == states
        assert (image.checkpoint_epoch, image.last_control_offset) == (1, newest_offset)
        assert image.delta_count == newest_offset - 130


@pytest.mark.parametrize(("deltas_per_checkpoint", "deltas_left"), [(500, 7), (6, 0)])
async def test_a_closed_log_has_the_image_of_its_last_leader(
    deltas_per_checkpoint: int, deltas_left: int
) -> None:
    played = await play(deltas_per_checkpoint=deltas_per_checkpoint)
    before = played.leader.image
    await played.stage.log.close()
    image = image_of(await recovered(played.stage.filesystem))
    fields = attrgetter(
        "checkpoint_epoch",
        "deleted",
        "delta_bytes",
        "delta_count",
        "end_offset",
        "group_incarnation",
        "last_control_offset",
        "leader_epoch",
        "ranges",
        "start_offset",
        "state_epoch",
    )
    assert fields(image) == fields(before)
    assert image.delta_count == deltas_left


async def test_the_delivery_of_120_is_tried_again_after_a_crash() -> None:
    """It was the first delivery, which is not recorded: the SPEO goes back from 121 to 120."""
    played = await play()
    again = await recovered(played.stage.filesystem)
    leader = again.share_partitions.lead(again.key("G1"), again.log)
    assert leader is not None
    assert (leader.core.spso, leader.core.speo) == (120, 120)
    assert again.fetch(leader, 1).acquired == [(120, 120, 1)]


async def test_consumers_read_none_of_the_control_records() -> None:
    played = await play()
    assert played.stage.log.log_end_offset == 138
    assert played.stage.log.high_watermark == 130
    headers = headers_of(played.stage.log.read(0, bytes_max=1 << 20).buffers)
    assert [(one.base_offset, one.last_offset) for one in headers] == [
        (0, 99),
        (100, 109),
        (110, 119),
        (120, 120),
        (121, 129),
    ]


async def test_the_earliest_share_offset_is_the_offset_of_the_newest_checkpoint() -> None:
    """Control records before it may be cleaned; those at or after it may not."""
    played = await play()
    assert dict(played.stage.log.share_records.checkpoint_offsets) == {"G1": 130}
    assert played.stage.log.share_records.earliest_offset == 130
    played = await play(deltas_per_checkpoint=6)
    assert played.stage.log.share_records.earliest_offset == 137
