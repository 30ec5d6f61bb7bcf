"""Counts with their nouns."""

from __future__ import annotations

from barnabas.protocol.counted import counted


def test_only_one_has_the_noun_without_an_s() -> None:
    assert [counted(count, "topic") for count in (0, 1, 2, 1_000)] == [
        "0 topics",
        "1 topic",
        "2 topics",
        "1,000 topics",
    ]


def test_a_noun_may_have_a_plural_of_its_own() -> None:
    assert [counted(count, "batch", "batches") for count in (1, 2)] == ["1 batch", "2 batches"]
