"""Lines of files and pipes, as they arrive."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from barnabas.cli.record_streams import input_files
from barnabas.cli.record_streams.input_files import Form, read_records
from barnabas.cli.record_streams.record_input import InputError, NewRecord

LINES = Form(as_json=False, key_separator=None, is_whole=False)


async def read(form: Form, *paths: Path) -> list[NewRecord]:
    return [record async for record in read_records([str(path) for path in paths], form)]


async def test_lines_of_all_files_are_read_and_the_last_one_may_lack_its_end(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_bytes(b"a\n\nb\r\nc")
    second.write_bytes(b"d\n")
    values = [record.value for record in await read(LINES, first, second)]
    assert values == [b"a", b"", b"b", b"c", b"d"]


async def test_a_line_may_be_longer_than_a_chunk(tmp_path: Path) -> None:
    path = tmp_path / "long"
    path.write_bytes(b"x" * (3 * input_files.CHUNK_BYTES) + b"\ny\n")
    values = [len(record.value or b"") for record in await read(LINES, path)]
    assert values == [3 * input_files.CHUNK_BYTES, 1]


async def test_a_line_beyond_the_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_files, "LINE_BYTES_MAX", 10)
    path = tmp_path / "endless"
    path.write_bytes(b"x" * 11)
    with pytest.raises(InputError, match="is longer than 10 bytes"):
        await read(LINES, path)


async def test_a_file_can_be_one_record(tmp_path: Path) -> None:
    path = tmp_path / "picture"
    path.write_bytes(b"\x89PNG\n\x00")
    assert await read(Form(False, None, is_whole=True), path) == [NewRecord(b"\x89PNG\n\x00")]


async def test_a_malformed_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_text('{"value": "v"}\n{\n')
    with pytest.raises(InputError, match=rf"line 2 of {path} is no record: it is not JSON"):
        await read(Form(as_json=True, key_separator=None, is_whole=False), path)


async def test_a_line_from_a_pipe_is_read_before_the_next_one_is_written(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = await asyncio.to_thread(_opened_for_both, path)
    try:
        records = read_records([str(path)], LINES)
        for line in (b"first", b"second"):
            os.write(writer, line + b"\n")
            assert (await anext(records)).value == line
        await records.aclose()
    finally:
        os.close(writer)


def _opened_for_both(path: Path) -> int:
    """A pipe that is open for reading, too, does not wait for its other end."""
    return os.open(path, os.O_RDWR)
