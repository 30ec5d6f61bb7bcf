"""A replay is cut into chunks that are bounded, complete and the same when it goes on."""

import pytest

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.replay.plan import (
    PIECES_MAX,
    Chunk,
    Piece,
    Plan,
    decode_plan,
    encode_plan,
    make_chunks,
)


@pytest.mark.parametrize(
    ("pieces", "rows_max", "chunks"),
    [
        ([], 10, []),
        ([("a", 0, 10)], 10, [[("a", 0, 10)]]),
        ([("a", 5, 26)], 10, [[("a", 5, 15)], [("a", 15, 25)], [("a", 25, 26)]]),
        ([("a", 0, 4), ("b", 0, 5), ("c", 0, 3)], 10, [[("a", 0, 4), ("b", 0, 5)], [("c", 0, 3)]]),
        ([("a", 0, 12), ("b", 0, 5)], 10, [[("a", 0, 10)], [("a", 10, 12), ("b", 0, 5)]]),
        ([("a", 0, 2)], 1, [[("a", 0, 1)], [("a", 1, 2)]]),
        ([("a", 3, 3)], 10, []),
    ],
)
def test_pieces_are_cut_and_packed(
    pieces: list[tuple[str, int, int]], rows_max: int, chunks: list[list[tuple[str, int, int]]]
) -> None:
    expected = tuple(tuple(Piece(*piece) for piece in chunk) for chunk in chunks)
    assert make_chunks([Piece(*piece) for piece in pieces], rows_max) == expected


def test_a_chunk_has_a_bounded_number_of_pieces() -> None:
    chunks = make_chunks([Piece(str(number), 0, 1) for number in range(PIECES_MAX + 1)], 1000)
    assert [len(chunk) for chunk in chunks] == [PIECES_MAX, 1]


def test_too_many_chunks_are_refused() -> None:
    with pytest.raises(PipelineError, match=r"100,001 chunks, more than 100,000: select fewer"):
        make_chunks([Piece("a", 0, 100_001)], 1)


def test_a_plan_is_the_same_when_it_is_read_again() -> None:
    chunks: tuple[Chunk, ...] = ((Piece("a", 0, 10), Piece("b", 3, 4)), (Piece("a", 10, 12),))
    plan = Plan("id", "asked", chunks)
    assert decode_plan(encode_plan(plan), "here") == plan
    assert plan.row_count == 13


@pytest.mark.parametrize("text", ["", "{}", '{"version": 2}', "[]", '{"version": 1, "replayId": 1}'])
def test_a_malformed_plan_is_named(text: str) -> None:
    with pytest.raises(PipelineError, match="here is no plan of a replay"):
        decode_plan(text, "here")
