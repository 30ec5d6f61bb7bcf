"""Heads of an opened log: the same with any share snapshot, and a line in the log if it was wrong."""

from __future__ import annotations

import errno
from collections.abc import Callable
from random import Random

import pytest
from crc32c import crc32c
from hypothesis import example, given, settings
from hypothesis import strategies as st
from structlog.typing import EventDict

from barnabas.storage.errors import StorageError
from barnabas.storage.format.share_index import group_hash
from barnabas.storage.format.share_snapshot import (
    FILE_NAME,
    ShareSnapshot,
    decode_share_snapshot,
    encode_share_snapshot,
)
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log_config import LogConfig
from tests.storage.log_building import (
    COLLIDING,
    DIRECTORY,
    NOW_MS,
    append,
    append_checkpoint,
    append_deltas,
    open_log,
)
from tests.storage.memory_filesystem import MemoryFileSystem

CONFIG = LogConfig(segment_bytes=600, index_interval_bytes=150, retention_ms=1)
LATER_MS = NOW_MS + 1_000_000
SNAPSHOT = f"{DIRECTORY}/share-snapshot"
GROUPS = ("busy", "idle", "gone", *COLLIDING)


async def opened(filesystem: MemoryFileSystem, recovery_point: int) -> PartitionLog:
    return await open_log(filesystem, config=CONFIG, recovery_point=recovery_point)


async def filled(filesystem: MemoryFileSystem) -> PartitionLog:
    """Many segments: "idle" has its only checkpoint in the first, "gone" ends in the second."""
    log = await open_log(filesystem, config=CONFIG)
    for group_id in ("idle", "gone"):
        append_checkpoint(log, group_id)
    for number in range(60):
        append(log)
        append_deltas(log, group_id="busy")
        if number % 7 == 0:
            append_checkpoint(log, "busy")
        if number == 6:
            append_checkpoint(log, "gone", deleted=True)
    assert log.segment_count > 10
    await log.flush()
    return log


async def proven(log: PartitionLog) -> dict[str, int]:
    """The heads by which segments are removed."""
    await log.enforce_retention(LATER_MS)
    return dict(log.share_records.checkpoint_offsets)


def snapshot_in(filesystem: MemoryFileSystem) -> ShareSnapshot:
    return decode_share_snapshot(bytes(filesystem.files[SNAPSHOT]))


def write(filesystem: MemoryFileSystem, snapshot: ShareSnapshot) -> None:
    filesystem.files[SNAPSHOT] = bytearray(encode_share_snapshot(snapshot))


def warnings_in(log_lines: list[EventDict]) -> list[EventDict]:
    return [line for line in log_lines if line["log_level"] in ("warning", "error")]


async def test_the_snapshot_follows_the_heads(log_lines: list[EventDict]) -> None:
    filesystem = MemoryFileSystem()
    log = await filled(filesystem)
    heads = dict(log.share_records.checkpoint_offsets)
    assert heads.keys() == {"busy", "idle"}
    assert (heads["idle"], log.share_records.earliest_offset) == (0, 0)
    assert snapshot_in(filesystem) == (log.log_end_offset, 0, heads)
    reopened = await opened(filesystem.copy(), log.recovery_point)
    assert dict(reopened.share_records.checkpoint_offsets) == heads
    assert await proven(reopened) == heads
    assert warnings_in(log_lines) == []


async def test_a_log_without_groups_has_no_snapshot(log_lines: list[EventDict]) -> None:
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem, config=CONFIG)
    for _ in range(30):
        append(log)
    await log.close()
    assert SNAPSHOT not in filesystem.files
    reopened = await opened(filesystem, log.recovery_point)
    assert (dict(reopened.share_records.checkpoint_offsets), reopened.share_records.earliest_offset) == (
        {},
        30,
    )
    assert warnings_in(log_lines) == []


async def test_every_roll_has_the_snapshot_written_again() -> None:
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem, config=CONFIG)
    append_checkpoint(log)
    await log.flush()
    append(log)
    await log.flush()
    assert snapshot_in(filesystem).end_offset == 1
    segment_count = log.segment_count
    while log.segment_count == segment_count:
        append(log)
    await log.close()
    assert snapshot_in(filesystem).end_offset == log.log_end_offset


async def test_with_a_usable_snapshot_the_indexes_of_old_segments_are_not_read() -> None:
    filesystem = MemoryFileSystem()
    log = await filled(filesystem)
    left, without = filesystem.copy(), filesystem.copy()
    del without.files[SNAPSHOT]
    for files in (left, without):
        await opened(files, log.recovery_point)
    assert left.read_count < log.segment_count + 15
    assert without.read_count > 2 * log.segment_count


TOMBSTONE_OFFSET = 17
"""The offset of the tombstone of the group "gone" in a filled log."""

Lie = Callable[[ShareSnapshot], ShareSnapshot]

LIES: dict[str, tuple[Lie | None, str]] = {
    "missing": (None, "there is no share snapshot"),
    "of the future": (lambda s: s._replace(end_offset=s.end_offset + 1), "and the log to"),
    "below zero": (lambda s: s._replace(end_offset=-5), "goes up to -5"),
    "of another history": (lambda s: s._replace(leader_epoch=7), "another history"),
    "with an offset where data is": (lambda s: _with(s, idle=2), "names a checkpoint of group 'idle' at 2"),
    "with a delta's offset": (lambda s: _with(s, busy=3, other=3), "names a checkpoint"),
    "with an offset below zero": (lambda s: _with(s, idle=-1), "names a checkpoint"),
    "with another group's checkpoint": (lambda s: _with(s, other=0), "names a checkpoint of group 'other'"),
    "with an offset beyond the end": (lambda s: _with(s, other=10**12), "names a checkpoint"),
    "with a tombstone as a head": (lambda s: _with(s, gone=TOMBSTONE_OFFSET), "names a checkpoint"),
}


def _with(snapshot: ShareSnapshot, **offsets: int) -> ShareSnapshot:
    return snapshot._replace(checkpoint_offsets={**snapshot.checkpoint_offsets, **offsets})


@pytest.mark.parametrize("lie", LIES)
async def test_an_impossible_snapshot_is_replaced(lie: str, log_lines: list[EventDict]) -> None:
    filesystem = MemoryFileSystem()
    log = await filled(filesystem)
    heads, good = dict(log.share_records.checkpoint_offsets), snapshot_in(filesystem)
    entry = next(iter(log.share_records.newest(group_hash("gone"))))
    assert (entry.offset, entry.tombstone) == (TOMBSTONE_OFFSET, True)
    tell, reason = LIES[lie]
    if tell is None:
        del filesystem.files[SNAPSHOT]
    else:
        write(filesystem, tell(snapshot_in(filesystem)))
    reopened = await opened(filesystem, log.recovery_point)
    assert dict(reopened.share_records.checkpoint_offsets) == heads
    (line,) = [one for one in log_lines if one["event"] == "the heads of share groups are read from the log"]
    assert (line["log_level"], reason in line["reason"]) == ("info" if tell is None else "warning", True)
    await reopened.close()
    assert snapshot_in(filesystem) == good


@pytest.mark.parametrize(
    "offsets",
    [
        pytest.param({}, id="without any group"),
        pytest.param({"idle": 0}, id="without a group"),
        pytest.param({"idle": 0, "gone": 1}, id="with a deleted group"),
        pytest.param({"idle": 0, "busy": 4}, id="with an older head"),
    ],
)
async def test_a_possible_but_wrong_snapshot_is_detected_before_anything_is_removed(
    offsets: dict[str, int], log_lines: list[EventDict]
) -> None:
    filesystem = MemoryFileSystem()
    log = await filled(filesystem)
    for _ in range(30):
        append(log)
    await log.close()
    heads = dict(log.share_records.checkpoint_offsets)
    write(filesystem, ShareSnapshot(log.log_end_offset, 0, offsets))
    reopened = await opened(filesystem, log.recovery_point)
    assert all(reopened.share_records.may_have_state(group_id) for group_id in GROUPS)
    pinned: list[frozenset[str]] = []
    reopened.pin_listeners.append(lambda _, group_ids: pinned.append(group_ids))
    assert await reopened.enforce_retention(LATER_MS) == 0
    assert pinned == [{"idle", "busy"}]
    assert dict(reopened.share_records.checkpoint_offsets) == heads
    assert not reopened.share_records.may_have_state("gone")
    (line,) = warnings_in(log_lines)
    assert "the share snapshot was wrong" in line["event"]
    await reopened.close()
    assert snapshot_in(filesystem).checkpoint_offsets == heads


@settings(max_examples=80)
@given(
    seed=st.integers(0, 2**16),
    data=st.one_of(
        st.none(),
        st.binary(max_size=80),
        st.binary(max_size=80).map(lambda body: b"\x00\x01" + crc32c(body).to_bytes(4, "big") + body),
        st.builds(
            ShareSnapshot,
            st.integers(-1, 130),
            st.sampled_from([0, 0, 0, -1, 1]),
            st.dictionaries(st.sampled_from(GROUPS), st.integers(-1, 130), max_size=4),
        ).map(encode_share_snapshot),
    ),
    kept=st.integers(0, 8),
)
@example(seed=0, data=None, kept=2)
async def test_any_bytes_in_the_file_give_the_heads_that_no_file_gives(
    seed: int, data: bytes | None, kept: int
) -> None:
    """Some entries of the true snapshot are mixed into the false one, so that it passes more checks."""
    filesystem, random = MemoryFileSystem(), Random(seed)
    log = await open_log(filesystem, config=CONFIG)
    offsets: dict[str, list[int]] = {group_id: [] for group_id in GROUPS}
    for _ in range(60):
        group_id = random.choice(GROUPS)
        match random.randrange(4):
            case 0 | 1:
                append(log)
            case 2:
                append_deltas(log, group_id=group_id)
            case _:
                offsets[group_id].append(
                    append_checkpoint(log, group_id, deleted=random.random() < 0.2).result().base_offset
                )
    await log.flush()
    with_file, without = filesystem.copy(), filesystem.copy()
    without.files.pop(SNAPSHOT, None)
    if data is None:
        chosen = {
            group_id: random.choice(one) for group_id, one in offsets.items() if one and random.random() < 0.6
        }
        data = encode_share_snapshot(ShareSnapshot(log.log_end_offset - kept, 0, chosen))
    with_file.files[SNAPSHOT] = bytearray(data)
    expected = await proven(await opened(without, log.recovery_point))
    assert expected == dict(log.share_records.checkpoint_offsets)
    assert await proven(await opened(with_file, log.recovery_point)) == expected


async def test_checkpoints_behind_a_stale_snapshot_count() -> None:
    filesystem = MemoryFileSystem()
    log = await filled(filesystem)
    stale = bytes(filesystem.files[SNAPSHOT])
    for _ in range(20):
        append(log)
    append_checkpoint(log, "idle")
    append_checkpoint(log, "busy", deleted=True)
    append_checkpoint(log, "new")
    await log.flush()
    filesystem.files[SNAPSHOT] = bytearray(stale)
    reopened = await opened(filesystem, log.recovery_point)
    end = log.log_end_offset
    assert dict(reopened.share_records.checkpoint_offsets) == {"idle": end - 3, "new": end - 1}
    assert await proven(reopened) == {"idle": end - 3, "new": end - 1}


async def test_checkpoints_before_the_heads_are_proven_count() -> None:
    filesystem = MemoryFileSystem()
    log = await filled(filesystem)
    reopened = await opened(filesystem, log.recovery_point)
    append_checkpoint(reopened, "idle", deleted=True)
    newest = append_checkpoint(reopened, "busy").result().base_offset
    assert await proven(reopened) == {"busy": newest}


async def test_after_a_loss_of_power_the_log_knows_its_heads() -> None:
    filesystem = MemoryFileSystem()
    log = await filled(filesystem)
    left = filesystem.after_power_loss()
    assert left.files.get(SNAPSHOT, b"") == b""
    reopened = await opened(left, log.recovery_point)
    assert dict(reopened.share_records.checkpoint_offsets) == dict(log.share_records.checkpoint_offsets)


async def test_a_snapshot_that_cannot_be_written_costs_a_line(
    log_lines: list[EventDict], monkeypatch: pytest.MonkeyPatch
) -> None:
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem, config=CONFIG)
    append_checkpoint(log)

    rename = filesystem.rename

    def refuse(source: str, target: str) -> None:
        if target.endswith(FILE_NAME):
            raise OSError(errno.EIO, "the disk says no", source)
        rename(source, target)

    monkeypatch.setattr(filesystem, "rename", refuse)
    await log.flush()
    assert (log.offline, log.recovery_point, log.needs_flush) == (None, 1, False)
    (line,) = warnings_in(log_lines)
    assert line["event"] == "the share snapshot was not written"
    assert "the disk says no" in line["reason"]


async def test_an_old_checkpoint_that_cannot_be_read_keeps_everything() -> None:
    filesystem = MemoryFileSystem()
    log = await filled(filesystem)
    content = filesystem.files[f"{DIRECTORY}/{0:020d}.log"]
    content[:] = content.replace(b"idle", b"id\xff\xff")
    del filesystem.files[SNAPSHOT]
    reopened = await opened(filesystem, log.recovery_point)
    assert all(reopened.share_records.may_have_state(group_id) for group_id in ("busy", "idle"))
    with pytest.raises(StorageError, match="names no group"):
        await reopened.enforce_retention(LATER_MS)
    assert (reopened.offline, reopened.log_start_offset) == (None, 0)
