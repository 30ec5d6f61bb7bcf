"""The file of a slice: written records are read again, and the footer describes them."""

from pathlib import Path
from typing import Any

import pytest

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.export import record_file
from barnabas.pipeline.export.directory import ExportDirectory, slice_path
from barnabas.pipeline.export.manifest import ExportedSlice
from barnabas.pipeline.export.record_file import find_slice, read_slice, write_slice
from tests.pipeline.export.records import batch

PIECE = ExportedSlice(slice_path("orders", 0, 0, 300), 0, 300)


@pytest.fixture
def directory(tmp_path: Path) -> ExportDirectory:
    return ExportDirectory(str(tmp_path))


def rows(directory: ExportDirectory, piece: ExportedSlice) -> list[dict[str, Any]]:
    return [row for one in read_slice(directory, piece) for row in one.to_pylist()]


def test_written_contents_are_read_again(directory: ExportDirectory) -> None:
    done = write_slice(directory, PIECE, [batch(0, 40), batch(40, 100)])
    assert rows(directory, done) == batch(0, 100).to_pylist()
    assert (done.record_count, done.size_bytes > 0) == (100, True)


def test_the_footer_has_counts_and_digest(directory: ExportDirectory) -> None:
    assert find_slice(directory, PIECE) is None
    done = write_slice(directory, PIECE, [batch(0, 100)])
    assert find_slice(directory, PIECE) == done


def test_a_slice_without_records_is_a_file_as_well(directory: ExportDirectory) -> None:
    done = write_slice(directory, PIECE, [])
    assert find_slice(directory, PIECE) == done
    assert rows(directory, done) == []


def test_row_groups_bound_the_memory(directory: ExportDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_file, "ROW_GROUP_BYTES", 1_000)
    write_slice(directory, PIECE, [batch(one, one + 10) for one in range(0, 100, 10)])
    assert record_file.pq.ParquetFile(directory.path(PIECE.path)).num_row_groups > 4


def test_a_writer_that_fails_leaves_no_file(directory: ExportDirectory) -> None:
    def failing() -> Any:
        yield batch(0, 10)
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError):
        write_slice(directory, PIECE, failing())
    assert find_slice(directory, PIECE) is None


@pytest.mark.parametrize("damage", [b"", b"PAR1 and no more"])
def test_a_damaged_file_is_named(directory: ExportDirectory, damage: bytes) -> None:
    write_slice(directory, PIECE, [batch(0, 10)])
    Path(directory.path(PIECE.path)).write_bytes(damage)
    with pytest.raises(PipelineError, match=f"{PIECE.path} is damaged"):
        find_slice(directory, PIECE)


def test_a_file_under_a_name_that_is_not_its_own_is_named(directory: ExportDirectory) -> None:
    write_slice(directory, PIECE, [batch(0, 10)])
    other = ExportedSlice(slice_path("orders", 0, 300, 600), 300, 600)
    Path(directory.path(PIECE.path)).rename(directory.path(other.path))
    with pytest.raises(PipelineError, match="does not hold the offsets in its name"):
        find_slice(directory, other)


def test_a_location_on_no_file_system_is_named() -> None:
    with pytest.raises(PipelineError, match="carrier-pigeon://loft is on no file system"):
        ExportDirectory("carrier-pigeon://loft")
