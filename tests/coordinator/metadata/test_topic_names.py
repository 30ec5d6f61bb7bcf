"""Topic names: refused ones, with Apache Kafka 4.3.1's messages, and collisions."""

import pytest

from barnabas.coordinator.metadata.topic_names import collision_key, invalid_topic_name, is_internal

PREFIX = "Topic name is invalid: "
LEGAL = "contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"


@pytest.mark.parametrize("name", ["a", "A-z_0.9", "x" * 249, "...", "-", "__consumer_offsets"])
def test_a_legal_name_is_not_refused(name: str) -> None:
    assert invalid_topic_name(name) is None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("a b", f"'a b' {LEGAL}"),
        ("a\n", f"'a\n' {LEGAL}"),
        ("ä", f"'ä' {LEGAL}"),
        ("٣", f"'٣' {LEGAL}"),
        ("x" * 250, f"the length of '{'x' * 250}' is longer than the max allowed length 249"),
    ],
)
def test_an_illegal_name_is_refused_with_its_reason(name: str, reason: str) -> None:
    assert invalid_topic_name(name) == PREFIX + reason


def test_names_that_differ_in_dots_and_underscores_collide() -> None:
    assert collision_key("a.b_c") == collision_key("a_b.c")
    assert collision_key("a-b") != collision_key("a_b")


def test_only_the_topics_of_state_are_internal() -> None:
    assert is_internal("__consumer_offsets")
    assert not is_internal("__mine")
