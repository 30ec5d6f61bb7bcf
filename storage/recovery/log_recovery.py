"""Opens a log: builds a `LogState` from the files, and repairs the damage of a crash.

Each opening takes the same steps. After a clean shutdown the recovery point is the end of the log, so the
scanned tail is short. The duration depends on that tail and on the number of files, not on the size of the
log. Each part has its own module: the directory (`log_files`), the segments (`segment_recovery`), the heads
of share groups (`share_head_recovery`), the producers (`producer_recovery`), the aborted transactions
(`transaction_recovery`).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace

from barnabas.runtime.moment import Moment
from barnabas.storage.errors import IndexDamaged
from barnabas.storage.files.open_files import OpenFiles
from barnabas.storage.format.leader_epochs import LeaderEpochs
from barnabas.storage.format.producer_snapshot import SNAPSHOT_SUFFIX
from barnabas.storage.producers.producer_state import ProducerState
from barnabas.storage.reading.read_errors import Reads
from barnabas.storage.reading.share_lookup import load_control_runs
from barnabas.storage.recovery.checksum_recovery import read_index_checksums, write_index_checksums
from barnabas.storage.recovery.producer_recovery import load_producers, settle_snapshots
from barnabas.storage.recovery.segment_recovery import Tail, load_segments
from barnabas.storage.recovery.share_head_recovery import load_share_heads
from barnabas.storage.recovery.transaction_recovery import load_transaction_indexes
from barnabas.storage.segments.segment import Segment
from barnabas.storage.segments.segments import Segments
from barnabas.storage.state.durability import Durability
from barnabas.storage.state.log_files import (
    LogPlace,
    offsets_of,
    prepare_directory,
    read_leader_epochs,
    settle_topic_id,
)
from barnabas.storage.state.log_state import LogState
from barnabas.storage.state.producer_snapshots import ProducerSnapshots

_OPEN_FILES_MAX = 8


async def load_log(place: LogPlace, *, leader_epoch: int, moment: Moment) -> LogState:
    """Opens or creates the log; raises OSError, and InconsistentTopicId for another topic's directory."""
    state = await place.filesystem.run(_load_repaired, place, moment)
    state.begin_leader_epoch(leader_epoch)
    await write_index_checksums(state)
    return state


def _load_repaired(place: LogPlace, moment: Moment) -> LogState:
    """Begins again when an index turns out to be damaged, and is rebuilt then; each index once."""
    found: set[str] = set()
    while True:
        try:
            return _load(place, moment)
        except IndexDamaged as error:
            if error.filename in found:
                raise
            found.add(error.filename)


def _load(place: LogPlace, moment: Moment) -> LogState:
    """All steps that read and write files, in one call of a thread: the hand-over costs more than most steps.

    The thread counts the files that it opens by itself, because the shared count belongs to the loop, and
    closes them in every case.
    """
    names = prepare_directory(place)
    settle_topic_id(place, names)
    epochs = read_leader_epochs(place, names)
    with closing(OpenFiles(_OPEN_FILES_MAX)) as in_thread:
        stored, checksums = read_index_checksums(place)
        counted_here = replace(place, shared=place.shared._replace(open_files=in_thread))
        segments, tail = load_segments(counted_here, names, checksums, moment.wall_ms)
        snapshots = ProducerSnapshots(place.filesystem, place.directory, offsets_of(names, SNAPSHOT_SUFFIX))
        state = _assemble(place, segments, epochs, snapshots, tail)
        state.index_checksums = stored
        replayed = load_producers(state, tail, durable_until=place.recovery_point)
        load_transaction_indexes(state, names, replayed)
        settle_snapshots(state, replayed, moment)
        state.first_unstable_offset = state.unstable_of_producers()
        state.control_runs.loading = Reads(state)
        for segment in segments:
            segment.hand_over(place.shared.open_files)
    return state


def _assemble(
    place: LogPlace, opened: Sequence[Segment], epochs: LeaderEpochs, snapshots: ProducerSnapshots, tail: Tail
) -> LogState:
    epochs.truncate_from_end(tail.next_offset)
    for begun in tail.begun_epochs:
        if begun[0] > epochs.latest_leader_epoch:
            epochs.assign(*begun)
    segments = Segments(opened)
    control_runs = load_control_runs(segments, tail.scanned_from)
    share_heads = load_share_heads(
        place, segments, epochs, log_end_offset=tail.next_offset, scanned_from=tail.scanned_from
    )
    for segment in opened[:-1]:
        for index in segment.indexes:
            index.release()
    log_start_offset = max(place.log_start_offset, segments.first.base_offset)
    control_runs.drop_below(log_start_offset)
    data_end_offset = control_runs.previous_data_offset(tail.next_offset - 1) + 1
    recovery_point = min(place.recovery_point, tail.next_offset)
    return LogState(
        filesystem=place.filesystem,
        directory=place.directory,
        topic_partition=place.topic_partition,
        topic_id=place.topic_id,
        config=place.config,
        storage=place.storage,
        shared=place.shared,
        segments=segments,
        durability=Durability(recovery_point, directory_changed=tail.is_new),
        producers=ProducerState(),
        producer_snapshots=snapshots,
        leader_epochs=epochs,
        control_runs=control_runs,
        share_heads=share_heads,
        log_start_offset=log_start_offset,
        log_end_offset=tail.next_offset,
        high_watermark=max(data_end_offset, log_start_offset),
    )
