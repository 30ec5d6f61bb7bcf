"""Known names that are similar to a misspelt one."""

import pytest

from barnabas.protocol.nearest_name import nearest_first, nearest_name

KNOWN = ("log.retention.ms", "log.retention.bytes", "listeners")


@pytest.mark.parametrize(
    ("typo", "meant"),
    [("log.retension.ms", "log.retention.ms"), ("listener", "listeners"), ("zzzzzz", None)],
)
def test_the_nearest_name_is_found(typo: str, meant: str | None) -> None:
    assert nearest_name(typo, KNOWN) == meant


def test_names_are_ordered_by_similarity_then_alphabetically() -> None:
    assert nearest_first("log.retension.ms", KNOWN) == [
        "log.retention.ms",
        "log.retention.bytes",
        "listeners",
    ]
    assert nearest_first("x", ["c", "a", "b"]) == ["a", "b", "c"]
