"""Handles records whose value doesn't fit the schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from barnabas.pipeline.errors import OptionError
from barnabas.pipeline.tables.batches import Batch
from barnabas.pipeline.tables.lake_table import LakeTable
from barnabas.pipeline.tables.opening import open_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from barnabas.pipeline.ingest.options import IngestOptions

ACK_DIRECTORY_OPTION: Final = "ackdir"


class TakesInvalid(Protocol):
    """Takes the records of a batch that don't fit, with all their columns and `reason`."""

    @property
    def has_to_repeat(self) -> bool:
        """Whether it must get the records again when a batch is repeated that the table has already."""
        ...

    def __call__(self, invalid: DataFrame, batch: Batch) -> None: ...


class IntoSideTable:
    """Adds them to a side table, each batch once."""

    def __init__(self, table: LakeTable) -> None:
        self._table = table

    @property
    def has_to_repeat(self) -> bool:
        return False

    def __call__(self, invalid: DataFrame, batch: Batch) -> None:
        staged = self._table.stage(invalid, batch)
        if staged is not None:
            staged.commit()


class Rejected:
    """Rejects them, so that the share group never delivers them again: `ack` is `reject`.

    The source forgets the decisions about a batch when the batch is repeated.
    """

    def __init__(self, ack_directory: str) -> None:
        from barnabas.pipeline.share_source.decisions import DecisionFiles

        self._decisions = DecisionFiles(ack_directory)

    @property
    def has_to_repeat(self) -> bool:
        return True

    def __call__(self, invalid: DataFrame, batch: Batch) -> None:
        from barnabas.pipeline.share_source.acknowledging import write_decisions

        decided = invalid.selectExpr("topic", "partition", "offset", "'reject' as ack")
        write_decisions(decided, batch.batch_id, self._decisions)


def taking_invalid(spark: SparkSession, options: IngestOptions) -> TakesInvalid | None:
    """The handling in the options; None to fail. Raises `OptionError` if the source cannot reject."""
    if options.side_table is not None:
        return IntoSideTable(open_table(spark, options.side_table))
    if options.invalid != "reject":
        return None
    given = {name.casefold(): value for name, value in options.source_options.items()}
    if ACK_DIRECTORY_OPTION not in given:
        raise OptionError("ackDir", "is needed by the source for invalid=reject: where decisions are noted")
    return Rejected(given[ACK_DIRECTORY_OPTION])
