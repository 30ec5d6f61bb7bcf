"""The record of a letter: the source topic's, unless another record has its offset; else the copy."""

from __future__ import annotations

import pytest

from barnabas.cli.dead_letters.content import (
    CLOCK_DIFFERENCE_MAX_MS,
    RECREATED,
    Content,
    Missing,
    Origin,
    content_of,
)
from barnabas.cli.dead_letters.letter import Letter
from barnabas.protocol.records import Record
from tests.cli.dead_letters.letters import LETTER, WRITTEN_MS

GONE = Missing("it was deleted")
HEADERS = (("trace", b"t"),)
SOURCE = Record(17, WRITTEN_MS - 1_000, b"k", b"v", HEADERS)
COPIED = LETTER._replace(key=b"k", value=b"v")
LATEST_MS = WRITTEN_MS + CLOCK_DIFFERENCE_MAX_MS
FROM_SOURCE = Content(Origin.SOURCE, b"k", b"v", HEADERS)
FROM_COPY = Content(Origin.COPY, b"k", b"v", ())


@pytest.mark.parametrize(
    ("letter", "found", "content"),
    [
        (LETTER, SOURCE, FROM_SOURCE),
        (LETTER, SOURCE._replace(timestamp_ms=LATEST_MS), FROM_SOURCE),
        (LETTER, SOURCE._replace(timestamp_ms=LATEST_MS + 1), Missing(RECREATED)),
        (LETTER, GONE, GONE),
        (LETTER, SOURCE._replace(key=None, value=None), Content(Origin.SOURCE, None, None, HEADERS)),
        (COPIED, SOURCE, FROM_SOURCE),
        (COPIED, SOURCE._replace(timestamp_ms=LATEST_MS + 1), FROM_SOURCE),
        (COPIED, SOURCE._replace(value=b"another"), FROM_COPY),
        (COPIED, SOURCE._replace(key=None), FROM_COPY),
        (COPIED, GONE, FROM_COPY),
        (COPIED._replace(headers=HEADERS), GONE, FROM_COPY._replace(headers=HEADERS)),
    ],
)
def test_the_content_of_a_letter_comes_from_its_source_or_its_copy(
    letter: Letter, found: Record | Missing, content: Content | Missing
) -> None:
    assert content_of(letter, found) == content
