"""Identifies batches, and tells whether a table has a batch already. Pure.

Spark numbers the micro-batches of a query. It repeats only the last one, under its number and with the same
records. A different batch under a number that the table knows comes from a checkpoint that is older than the
table. To take it for a repetition would lose its records.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from barnabas.pipeline.errors import PipelineError

UNKNOWN: Final = 0
"""Stands for the fingerprint of a batch that has none."""


class Batch(NamedTuple):
    """A batch of a query."""

    query: str
    batch_id: int
    fingerprint: int = UNKNOWN
    """63 bits of a hash: it differs between batches of one number with different records."""

    @property
    def name(self) -> str:
        """The name of its files; names ascend with a query's batches."""
        return f"{self.query}-{self.batch_id:012}"


def has_batch(location: str, last: Batch | None, batch: Batch) -> bool:
    """Whether the table at `location` has a batch; `last` is the last one that it has of the query.

    Raises `PipelineError` if it has a later one, or another one of the same number.
    """
    if last is None or last.batch_id < batch.batch_id:
        return False
    is_same = UNKNOWN in (last.fingerprint, batch.fingerprint) or last.fingerprint == batch.fingerprint
    if last.batch_id == batch.batch_id and is_same:
        return True
    raise PipelineError(
        f"{location} has batch {last.batch_id} of this query already, and now batch {batch.batch_id} is to "
        "be added with other records: the checkpoint is older than the table, as a restored copy is. Nothing "
        "of it was added. Go on with the checkpoint that the table was written with last, or with a new one. "
        "A new one makes a new query: the records that it reads again are in the table twice."
    )
