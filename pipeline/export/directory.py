"""The directory of an export, on any file system that PyArrow knows: local, S3, GCS, HDFS, Azure.

    manifest.json                                       what is exported, and whether all of it is there
    records/<topic>-<partition>/<start>-<end>.parquet   records by offset, `end` exclusive
    restore-<cluster id>.json                           how far a restore into that cluster is

A file has its name only once it is whole: it is written under another and renamed. The driver and every
executor must reach the same directory, so on a cluster it is no local one.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from barnabas.pipeline.errors import PipelineError

RECORDS: Final = "records"

_OFFSET_DIGITS: Final = 20
_UNFINISHED: Final = ".unfinished"


def slice_path(topic: str, partition: int, start_offset: int, end_offset: int) -> str:
    """Where a slice lies in the directory."""
    offsets = f"{start_offset:0{_OFFSET_DIGITS}}-{end_offset:0{_OFFSET_DIGITS}}"
    return f"{RECORDS}/{topic}-{partition}/{offsets}.parquet"


class ExportDirectory:
    """One directory, by its path or URI. Can be pickled. OSError for what cannot be read or written."""

    def __init__(self, location: str) -> None:
        """Raises `PipelineError` if no file system goes with the location."""
        self.location = location
        self._files, self._root = _resolve(location)

    def __reduce__(self) -> tuple[type[ExportDirectory], tuple[str]]:
        return (ExportDirectory, (self.location,))

    def path(self, name: str) -> str:
        """As PyArrow's file system takes it."""
        return f"{self._root}/{name}"

    @property
    def files(self) -> Any:
        """The pyarrow.fs.FileSystem."""
        return self._files

    def size_bytes(self, name: str) -> int | None:
        """How large a file is; None if there is none."""
        (found,) = self._files.get_file_info([self.path(name)])
        return found.size if found.is_file else None

    def read_text(self, name: str) -> str | None:
        """A file's content; None if there is none."""
        if self.size_bytes(name) is None:
            return None
        with self._files.open_input_stream(self.path(name)) as file:
            content: bytes = file.read()
        return content.decode()

    def write_text(self, name: str, text: str) -> None:
        """Write or replace a file as a whole."""
        with self.replacing(name) as file:
            file.write(text.encode())

    @contextmanager
    def replacing(self, name: str) -> Generator[Any]:
        """A file to be written, which has its name once the block ends; not if it raises."""
        path = self.path(name)
        self._files.create_dir(path.rpartition("/")[0], recursive=True)
        with self._files.open_output_stream(path + _UNFINISHED) as file:
            yield file
        self._files.move(path + _UNFINISHED, path)


def _resolve(location: str) -> tuple[Any, str]:
    fs = import_module("pyarrow.fs")
    uri = location if "://" in location else Path(location).absolute().as_uri()
    try:
        files, root = fs.FileSystem.from_uri(uri)
    except (ValueError, NotImplementedError, OSError) as error:
        raise PipelineError(f"{location} is on no file system that PyArrow knows: {error}") from error
    return files, root.rstrip("/")
