"""The filters of letters, and the arguments that they come from."""

from __future__ import annotations

import pytest

from barnabas.cli.dead_letters.letter import NotALetter
from barnabas.cli.dead_letters.selection import LetterOffsets, Selection, parse_offsets
from tests.cli.dead_letters.letters import LETTER, WRITTEN_MS


@pytest.mark.parametrize(
    ("selection", "matches"),
    [
        (Selection(), True),
        (Selection(source_topic="orders"), True),
        (Selection(source_topic="order"), False),
        (Selection(group="billing"), True),
        (Selection(group="Billing"), False),
        (Selection(reason="COUNT exceeded"), True),
        (Selection(reason="rejected"), False),
        (Selection(since_ms=WRITTEN_MS), True),
        (Selection(since_ms=WRITTEN_MS + 1), False),
        (Selection(until_ms=WRITTEN_MS + 1), True),
        (Selection(until_ms=WRITTEN_MS), False),
        (Selection(offsets=(LetterOffsets(None, 40, 40),)), True),
        (Selection(offsets=(LetterOffsets(1, 0, 39), LetterOffsets(1, 40, 50))), True),
        (Selection(offsets=(LetterOffsets(0, 40, 40),)), False),
        (Selection(offsets=(LetterOffsets(1, 41, 50),)), False),
        (Selection(group="billing", source_topic="elsewhere"), False),
        (Selection(key=b"k"), True),
    ],
)
def test_a_letter_must_pass_every_filter(selection: Selection, matches: bool) -> None:
    assert selection.matches(LETTER) is matches


@pytest.mark.parametrize(
    ("selection", "matches"),
    [
        (Selection(), True),
        (Selection(since_ms=WRITTEN_MS, offsets=(LetterOffsets(1, 40, 40),)), True),
        (Selection(until_ms=WRITTEN_MS), False),
        (Selection(offsets=(LetterOffsets(1, 41, 41),)), False),
        (Selection(source_topic="orders"), False),
        (Selection(group="billing"), False),
        (Selection(reason=""), False),
        (Selection(key=b"k"), False),
    ],
)
def test_a_record_that_is_no_letter_is_selected_by_offset_and_time_only(
    selection: Selection, matches: bool
) -> None:
    assert selection.matches(NotALetter(1, 40, WRITTEN_MS, "it has no header")) is matches


def test_the_key_is_compared_with_that_of_the_record() -> None:
    assert [Selection(key=b"k").matches_key(key) for key in (b"k", b"K", None)] == [True, False, False]
    assert Selection().matches_key(None)


@pytest.mark.parametrize(
    ("offsets", "looked_at"),
    [
        ((), range(10, 60)),
        ((LetterOffsets(1, 0, 20),), range(10, 21)),
        ((LetterOffsets(None, 30, 99),), range(30, 60)),
        ((LetterOffsets(1, 12, 13), LetterOffsets(None, 40, 41)), range(12, 42)),
        ((LetterOffsets(0, 12, 13),), range(0)),
    ],
)
def test_only_offsets_that_can_match_are_read(offsets: tuple[LetterOffsets, ...], looked_at: range) -> None:
    assert list(Selection(offsets=offsets).bounds(1, 10, 60)) == list(looked_at)


@pytest.mark.parametrize(
    ("text", "offsets"),
    [
        ("17", LetterOffsets(None, 17, 17)),
        ("17-40", LetterOffsets(None, 17, 40)),
        ("2:17", LetterOffsets(2, 17, 17)),
        ("0:17-17", LetterOffsets(0, 17, 17)),
    ],
)
def test_offsets_may_name_their_partition(text: str, offsets: LetterOffsets) -> None:
    assert parse_offsets(text) == offsets


@pytest.mark.parametrize("text", ["", "x", "-", "5-", "-5", "9-8", ":5", "1:", "1:2:3", "1:5-x", "²"])
def test_other_offsets_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not \[PARTITION:\]FIRST\[-LAST\], such as 17"):
        parse_offsets(text)
