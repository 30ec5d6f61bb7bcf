"""The directory of an export, on any file system that PyArrow knows: local, S3, GCS, HDFS, Azure.

    manifest.json                                       the plan, and whether all of it is there
    records/<topic>-<partition>/<start>-<end>.parquet   records by offset, `end` exclusive
    restore-<cluster id>.json                           the progress of a restore into that cluster

A file has its name only once it is whole and, on a local disk, durable (`arrow_files`). The driver and every
executor must reach the same directory, so on a cluster it can't be a local one.
"""

from __future__ import annotations

from typing import Final

from barnabas.pipeline.arrow_files import ArrowFiles
from barnabas.pipeline.errors import PipelineError

RECORDS: Final = "records"

_OFFSET_DIGITS: Final = 20


def slice_path(topic: str, partition: int, start_offset: int, end_offset: int) -> str:
    """The path of a slice in the directory."""
    offsets = f"{start_offset:0{_OFFSET_DIGITS}}-{end_offset:0{_OFFSET_DIGITS}}"
    return f"{RECORDS}/{topic}-{partition}/{offsets}.parquet"


class ExportDirectory:
    """One directory, by its path or URI. Can be pickled. OSError if reading or writing fails."""

    def __init__(self, location: str) -> None:
        """Raises `PipelineError` if PyArrow knows no file system for the location."""
        self.location = location
        try:
            self._files = ArrowFiles(location)
        except (ValueError, NotImplementedError, OSError) as error:
            raise PipelineError(f"{location} is on no file system that PyArrow knows: {error}") from error

    def __reduce__(self) -> tuple[type[ExportDirectory], tuple[str]]:
        return (ExportDirectory, (self.location,))

    @property
    def files(self) -> ArrowFiles:
        """The files in it."""
        return self._files

    def path(self, name: str) -> str:
        """The path of a file for PyArrow's file system."""
        return self._files.path(name)

    def size_bytes(self, name: str) -> int | None:
        """The size of a file; None if there is none."""
        return self._files.size_bytes(name)

    def read_text(self, name: str) -> str | None:
        """The content of a file; None if there is none."""
        return None if self.size_bytes(name) is None else self._files.read(name).decode()

    def write_text(self, name: str, text: str) -> None:
        """Writes or replaces a file as a whole."""
        with self._files.replacing(name) as file:
            file.write(text.encode())
