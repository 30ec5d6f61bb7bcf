"""The origin of a replay's records: a table's data files, or topics. Lists the pieces and reads chunks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame, SparkSession

    from barnabas.pipeline.replay.options import ReplayOptions
    from barnabas.pipeline.replay.plan import Chunk, Piece


class Origin(Protocol):
    """Where records come from."""

    @property
    def name(self) -> str:
        """The name in the header of replayed records."""
        ...

    def pieces(self) -> Iterable[Piece]:
        """All pieces that exist now."""
        ...

    def check(self, pieces: Iterable[Piece]) -> None:
        """Raises `PipelineError` if a planned piece does not exist any more."""
        ...

    def read(self, chunk: Chunk) -> DataFrame:
        """The rows of a chunk."""
        ...


def open_origin(spark: SparkSession, options: ReplayOptions) -> Origin:
    """The origin that the options name. Raises `OptionError` and `PipelineError`."""
    if options.topic_options is not None:
        from barnabas.pipeline.replay.topic_origin import TopicOrigin

        return TopicOrigin(spark, options.topic_options)
    assert options.table is not None, "checked with the options"
    from barnabas.pipeline.replay.table_origin import TableOrigin

    return TableOrigin(spark, options.table)
