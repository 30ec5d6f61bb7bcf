"""The plan of a replay: chunks that are written one after another. Pure.

A piece is a run of rows of one file, or of offsets of one partition. The plan is made once and kept: a replay
that goes on later has the same chunks, even if the table or topic has new records.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from barnabas.pipeline.errors import PipelineError

CHUNKS_MAX: Final = 100_000
PIECES_MAX: Final = 64
"""In one chunk: each is a condition of the query that reads it."""

_VERSION: Final = 1


class Piece(NamedTuple):
    """`origin` is a file's URI or a partition as `topic/topic id/partition`; `end` is exclusive."""

    origin: str
    first: int
    end: int

    @property
    def row_count(self) -> int:
        """Rows, or offsets, with or without a record."""
        return self.end - self.first


Chunk = tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """`replay_id` names the replay for the sink; `asked` has its options, to recognize other replays."""

    replay_id: str
    asked: str
    chunks: tuple[Chunk, ...]

    @property
    def row_count(self) -> int:
        """All rows, before they are filtered."""
        return sum(piece.row_count for chunk in self.chunks for piece in chunk)


def make_chunks(pieces: Iterable[Piece], rows_max: int) -> tuple[Chunk, ...]:
    """Chunks of at most `rows_max` rows and `PIECES_MAX` pieces. Raises `PipelineError` for too many."""
    chunks = tuple(_packed(_cut(pieces, rows_max), rows_max))
    if len(chunks) > CHUNKS_MAX:
        raise PipelineError(
            f"The replay would have {len(chunks):,} chunks, more than {CHUNKS_MAX:,}: "
            "select fewer records, or raise chunk_records or the rate."
        )
    return chunks


def _cut(pieces: Iterable[Piece], rows_max: int) -> Iterator[Piece]:
    for piece in pieces:
        for first in range(piece.first, piece.end, rows_max):
            yield piece._replace(first=first, end=min(piece.end, first + rows_max))


def _packed(pieces: Iterable[Piece], rows_max: int) -> Iterator[Chunk]:
    chunk: list[Piece] = []
    row_count = 0
    for piece in pieces:
        if chunk and (row_count + piece.row_count > rows_max or len(chunk) == PIECES_MAX):
            yield tuple(chunk)
            chunk, row_count = [], 0
        chunk.append(piece)
        row_count += piece.row_count
    if chunk:
        yield tuple(chunk)


def encode_plan(plan: Plan) -> str:
    """The plan as text."""
    return json.dumps(
        {"version": _VERSION, "replayId": plan.replay_id, "asked": plan.asked, "chunks": plan.chunks}
    )


def decode_plan(text: str, where: str) -> Plan:
    """The plan from its text. Raises `PipelineError`, which names `where`, if it is no plan."""
    try:
        values = json.loads(text)
        if values["version"] != _VERSION:
            raise ValueError(values["version"])
        chunks = tuple(tuple(Piece(*piece) for piece in chunk) for chunk in values["chunks"])
        return Plan(values["replayId"], values["asked"], chunks)
    except (ValueError, KeyError, TypeError) as error:
        raise PipelineError(f"{where} is no plan of a replay.") from error
