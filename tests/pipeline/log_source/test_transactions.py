"""Aborted and open transactions, from index files, and from headers where there are no such files."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from barnabas.pipeline.log_source.errors import LogFileError
from barnabas.pipeline.log_source.segment_slice import OFFSET_MAX
from barnabas.pipeline.log_source.transaction_index import AbortedTransaction, decode_transaction_index
from barnabas.pipeline.log_source.transactions import read_transactions
from barnabas.protocol.control_record import ControlType, control_key
from barnabas.protocol.record_batch import CONTROL_FLAG, TRANSACTIONAL_FLAG, Compression, build_batch
from barnabas.storage.format.producer_snapshot import ProducerSnapshotEntry, encode_snapshot
from tests.pipeline.log_source.reading import read_offsets
from tests.pipeline.log_source.written_directory import TRANSACTION_ENTRY, WrittenDirectory, batch_of

ONE, OTHER = 1001, 1002


def sent(base_offset: int, count: int, producer_id: int = ONE, **more: Compression) -> bytes:
    return batch_of(base_offset, count, producer_id=producer_id, attributes=TRANSACTIONAL_FLAG, **more)


def marker(offset: int, kind: ControlType, producer_id: int = ONE) -> bytes:
    return build_batch(
        offset,
        [(control_key(kind), bytes(6))],
        leader_epoch=0,
        timestamp_ms=0,
        attributes=TRANSACTIONAL_FLAG | CONTROL_FLAG,
        producer_id=producer_id,
        producer_epoch=0,
    )


@pytest.fixture
def written(tmp_path: Path) -> WrittenDirectory:
    return WrittenDirectory(tmp_path)


SEGMENTS = [
    [sent(0, 10), batch_of(10, 10), sent(20, 10, OTHER), marker(30, ControlType.ABORT)],
    [sent(31, 9, compression=Compression.ZSTD), marker(40, ControlType.COMMIT, OTHER)],
    [marker(41, ControlType.ABORT), sent(42, 8), marker(50, ControlType.COMMIT), batch_of(51, 9)],
]
"""Of the first producer 0 to 9 and 31 to 39 are aborted, 42 to 49 committed; all of the other's is."""
ABORTED = {0: [AbortedTransaction(ONE, 0, 30)], 2: [AbortedTransaction(ONE, 31, 41)]}
COMMITTED = [*range(10, 30), *range(42, 50), *range(51, 60)]
UNCOMMITTED = [*range(30), *range(31, 40), *range(42, 50), *range(51, 60)]


def write_segments(written: WrittenDirectory, *, indexes: bool) -> None:
    for number, batches in enumerate(SEGMENTS):
        path = written.segment(batches)
        if indexes and number in ABORTED:
            written.aborted(path, ABORTED[number])


@pytest.mark.parametrize("indexes", [True, False])
@pytest.mark.parametrize("slice_bytes", [1, 200, 10**9])
def test_aborted_records_are_left_out_of_a_committed_read(
    written: WrittenDirectory, indexes: bool, slice_bytes: int
) -> None:
    write_segments(written, indexes=indexes)
    assert read_offsets(written.path, isolation="read_committed", sliceBytes=slice_bytes) == COMMITTED


def test_an_uncommitted_read_has_everything(written: WrittenDirectory) -> None:
    write_segments(written, indexes=True)
    assert read_offsets(written.path) == UNCOMMITTED


@pytest.mark.parametrize("indexes", [True, False])
def test_a_committed_read_ends_where_the_oldest_open_transaction_begins(
    written: WrittenDirectory, indexes: bool
) -> None:
    write_segments(written, indexes=indexes)
    written.segment([batch_of(60, 5), sent(65, 5), sent(70, 5, OTHER), marker(75, ControlType.COMMIT, OTHER)])
    assert read_offsets(written.path, isolation="read_committed") == [*COMMITTED, *range(60, 65)]


def test_a_transaction_open_since_before_the_snapshot_is_known_by_it(written: WrittenDirectory) -> None:
    path = written.segment([batch_of(0, 10), sent(10, 10)])
    written.aborted(path, [])
    written.segment([batch_of(20, 10)])
    entry = ProducerSnapshotEntry(ONE, 0, 9, 19, 9, 0, 0, 10)
    path.with_name(f"{20:020d}.snapshot").write_bytes(encode_snapshot([entry]))
    assert read_offsets(written.path, isolation="read_committed") == list(range(10))


@pytest.mark.parametrize("look", range(3))
def test_a_flush_while_the_files_are_looked_up_hides_nothing(
    written: WrittenDirectory, monkeypatch: pytest.MonkeyPatch, look: int
) -> None:
    before, behind = AbortedTransaction(ONE, 0, 5), AbortedTransaction(ONE, 10, 20)
    path = written.segment([sent(0, 5), marker(5, ControlType.ABORT), batch_of(6, 4)])
    written.aborted(path, [before])
    active = written.segment([sent(10, 10), marker(20, ControlType.ABORT), batch_of(21, 9)])
    folder, glob, looks = written.folder(), Path.glob, count()

    def glob_around_a_flush(self: Path, pattern: str) -> Iterator[Path]:
        if next(looks) == look:
            written.aborted(active, [behind])
            path.with_name(f"{30:020d}.snapshot").write_bytes(encode_snapshot([]))
        return iter(list(glob(self, pattern)))

    monkeypatch.setattr(Path, "glob", glob_around_a_flush)
    found = read_transactions(folder)
    assert set(found.aborted) == {before, behind}
    assert found.last_stable_offset == OFFSET_MAX


def test_a_damaged_snapshot_is_passed_over_for_an_older_one(written: WrittenDirectory) -> None:
    path = written.segment([batch_of(0, 10), sent(10, 10)])
    written.aborted(path, [])
    written.segment([batch_of(20, 10)])
    path.with_name(f"{20:020d}.snapshot").write_bytes(b"\x00\x01damaged")
    assert read_offsets(written.path, isolation="read_committed") == list(range(10))


def test_a_transaction_that_begins_below_the_log_start_is_aborted_all_the_same(
    written: WrittenDirectory,
) -> None:
    written.segment([sent(0, 10), sent(10, 10), marker(20, ControlType.ABORT), batch_of(21, 9)])
    written.checkpoint("log-start-offset-checkpoint", {("t", 0): 15})
    assert read_offsets(written.path, isolation="read_committed") == list(range(21, 30))


@pytest.mark.parametrize(
    ("data", "reason"), [(bytes(33), "33 bytes"), (TRANSACTION_ENTRY.pack(1, 1, 2, 3, 4), "version 1")]
)
def test_a_transaction_index_that_cannot_be_read_is_named(
    written: WrittenDirectory, data: bytes, reason: str
) -> None:
    path = written.segment([sent(0, 10)]).with_suffix(".txnindex")
    path.write_bytes(data)
    with pytest.raises(LogFileError, match=f"^{path}: .*{reason}"):
        read_offsets(written.path, isolation="read_committed")


def test_the_entries_of_a_transaction_index_are_decoded() -> None:
    data = TRANSACTION_ENTRY.pack(0, 7, 100, 200, 90) + TRANSACTION_ENTRY.pack(0, 8, 150, 250, 100)
    assert list(decode_transaction_index(data)) == [(7, 100, 200), (8, 150, 250)]
