"""Files that were moved to their place in a table and are not in its log yet."""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.pipeline.tables.hadoop_files import HadoopFiles
from barnabas.pipeline.tables.parquet.log import TableFile
from barnabas.pipeline.tables.staging import StagedFile


def placed_files(files: HadoopFiles, place: str, found: Iterable[StagedFile]) -> list[TableFile]:
    """The files that were found in `place`, as the log names them."""
    return [
        TableFile(files.uri(f"{place}/{staged.path}"), staged.size_bytes, staged.modified_ms)
        for staged in found
    ]


def no_step(_step: str) -> None:
    """The default of `at_step`, with which tests cut a writer short after a step."""
