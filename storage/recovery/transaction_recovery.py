"""Loads the segments' transaction indexes when a log is opened.

Below the recovery point they are durable and trusted. The replay of the producers has found the aborted
transactions behind it. An index with an impossible file is rebuilt from the whole log, because a transaction
may begin in any earlier segment. If the whole log was replayed, an index that lacks a transaction is rebuilt
as well. Otherwise a lost file cannot be distinguished from one that was never needed, as in Apache Kafka.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from barnabas.protocol.varint import RecordFormatError
from barnabas.runtime.logging import get_logger
from barnabas.storage.filesystem import put_whole, read_whole
from barnabas.storage.format.transaction_index import (
    ENTRY_BYTES,
    AbortedTransaction,
    TransactionIndex,
)
from barnabas.storage.producers.producer_state import ProducerState
from barnabas.storage.recovery.producer_recovery import Replayed, produced_between, replay_produced
from barnabas.storage.segments.segment import Segment
from barnabas.storage.state.log_state import LogState

logger = get_logger("recovery")


def load_transaction_indexes(state: LogState, names: Collection[str], replayed: Replayed) -> None:
    """Loads the indexes of all segments; `names` are the files of the log's directory.

    `replayed` has the aborted transactions behind the files' durable part. For a thread; raises OSError, and
    RecordFormatError where the log or its share indexes are damaged.
    """
    kept_until = max(replayed.replayed_from, state.durability.recovery_point)
    behind = [aborted for aborted in replayed.aborted if aborted.last_offset >= kept_until]
    damaged: list[Segment] = []
    for segment in state.segments:
        is_there = segment.transaction_index.path.rpartition("/")[2] in names
        if _is_whole(state, segment, kept_until):
            is_good = _trust(state, segment, is_there=is_there)
        else:
            is_good = _recover(
                state, segment, kept_until, _markers_in(state, segment, behind), is_there=is_there
            )
        if is_good and replayed.is_whole_log:
            is_good = _names_all(segment, _markers_in(state, segment, replayed.aborted))
        if not is_good:
            damaged.append(segment)
    if damaged:
        _rebuild(state, damaged, replayed.aborted if replayed.is_whole_log else _aborted_in(state))
    if replayed.is_whole_log:
        _write_pending(state)


def _is_whole(state: LogState, segment: Segment, offset: int) -> bool:
    """Whether the segment is closed and ends at or below `offset`."""
    following = state.segments.after(segment)
    return following is not None and following.base_offset <= offset


def _trust(state: LogState, segment: Segment, *, is_there: bool) -> bool:
    """Trusts a durable index, mostly without reading it; False if it must be rebuilt."""
    index = segment.transaction_index
    if (
        is_there
        and state.config.checks_indexes
        and not index.is_intact(read_whole(state.filesystem, index.path))
    ):
        return False
    return index.trust(state.filesystem.file_size(index.path) if is_there else 0)


def _recover(
    state: LogState,
    segment: Segment,
    kept_until: int,
    behind: Sequence[AbortedTransaction],
    *,
    is_there: bool,
) -> bool:
    """Loads the durable part of an index, and adds the transactions `behind` it; False for an impossible
    file.
    """
    stored = segment.transaction_index
    found = read_whole(state.filesystem, stored.path) if is_there else b""
    index = _decoded(found) if stored.is_intact(found) else None
    if index is None or (len(found) % ENTRY_BYTES and not behind):
        return False  # a torn entry was not durable, so its transaction would be in `behind`
    index.truncate_to(kept_until)
    if kept_until <= segment.base_offset:
        stored.begin(index)
    else:
        stored.adopt(index, found[: len(index) * ENTRY_BYTES])
    for aborted in behind:
        segment.note_aborted(aborted)
    if is_there or stored.pending_bytes:
        stored.settle(found)
    return True


def _decoded(data: bytes) -> TransactionIndex | None:
    """The index in a file, whose last entry may be torn; None for impossible content."""
    try:
        index = TransactionIndex(data)
    except RecordFormatError:
        return None
    return index if index.is_sane() else None


def _markers_in(
    state: LogState, segment: Segment, aborted: Iterable[AbortedTransaction]
) -> list[AbortedTransaction]:
    following = state.segments.after(segment)
    end_offset = state.log_end_offset if following is None else following.base_offset
    return [
        transaction for transaction in aborted if segment.base_offset <= transaction.last_offset < end_offset
    ]


def _names_all(segment: Segment, aborted: Iterable[AbortedTransaction]) -> bool:
    """Whether the segment's index lists all of them. It may list more: their batches may be in removed
    segments.
    """
    try:
        index = segment.transaction_index.peek()
    except RecordFormatError:
        return False
    named = {
        (transaction.producer_id, transaction.last_offset)
        for transaction in index.entries_from(segment.base_offset)
    }
    return all((transaction.producer_id, transaction.last_offset) in named for transaction in aborted)


def _aborted_in(state: LogState) -> list[AbortedTransaction]:
    """All aborted transactions, replayed from the whole log."""
    first_offset = state.segments.first.base_offset
    produced = produced_between(state, first_offset, state.log_end_offset)
    return replay_produced(ProducerState(), produced, first_offset)


def _rebuild(state: LogState, damaged: Iterable[Segment], aborted: Collection[AbortedTransaction]) -> None:
    """Rebuilds indexes from the whole log and writes them, because no flush visits old segments."""
    for segment in damaged:
        stored = segment.transaction_index
        logger.warning("a transaction index is damaged or incomplete, and is rebuilt", path=stored.path)
        stored.begin(TransactionIndex())
        for transaction in _markers_in(state, segment, aborted):
            segment.note_aborted(transaction)
        put_whole(state.filesystem, stored.path, stored.pending)
        stored.pending_written(stored.pending_bytes)
        stored.rebuilt()
    state.filesystem.sync_directory(state.directory)


def _write_pending(state: LogState) -> None:
    """Makes the pending entries durable, before a snapshot of the producers replaces the whole log's replay.

    The next start replays only the log behind that snapshot.
    """
    for segment in state.segments:
        stored = segment.transaction_index
        count_bytes = stored.pending_bytes
        if count_bytes:
            stored.write_pending(count_bytes)
            stored.pending_written(count_bytes)
    state.filesystem.sync_directory(state.directory)
