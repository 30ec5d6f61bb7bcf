"""What a table knows a batch by, and whether it has a batch already (pure).

Spark numbers the micro-batches of a query, and repeats none but the last one: under its number, with the same
records. Whatever else comes under a number that the table knows comes of a checkpoint that is older than the
table. Its records are others, and to take them for a repetition would lose them.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from barnabas.pipeline.errors import PipelineError

UNKNOWN: Final = 0
"""The fingerprint of a batch that none was taken of."""


class Batch(NamedTuple):
    """A batch of a query."""

    query: str
    batch_id: int
    fingerprint: int = UNKNOWN
    """Differs, but by a rare chance, between batches of one number with different records; 63 bits."""

    @property
    def name(self) -> str:
        """By which its files go; in the order of a query's batches."""
        return f"{self.query}-{self.batch_id:012}"


def has_batch(location: str, last: Batch | None, batch: Batch) -> bool:
    """Whether the table there has a batch, if `last` is the last that it has of the query.

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
        "of it was added. Go on with the checkpoint that the table was written with last, or with a new one, "
        "which makes a new query: what that reads again is in the table again."
    )
