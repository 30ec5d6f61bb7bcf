"""Regular expressions of clients: they match whole texts, invalid ones are refused, and none is slow."""

from __future__ import annotations

import pytest

from barnabas.coordinator.consumer.regular_expression import LENGTH_MAX, RegexError, RegularExpression

MATCHES = [
    ("orders", "orders", True),
    ("orders", "orders-eu", False),
    ("orders-.*", "orders-eu", True),
    ("(eu|us)-[0-9]{2,3}", "us-42", True),
    ("(eu|us)-[0-9]{2,3}", "us-4", False),
    ("^orders$", "orders", True),
    (r"a\.b", "axb", False),
    (r"\Qa.b\E.", "a.bc", True),
    ("(?i)Orders", "ORDERS", True),
    ("[[:alpha:]]+", "aZ", True),
    (r"\p{Greek}+ \w", "αβγ a", True),
    ("", "a", False),
    ("", "", True),
]


@pytest.mark.parametrize(("expression", "text", "matches"), MATCHES)
def test_a_text_matches_as_with_re2(expression: str, text: str, matches: bool) -> None:
    assert RegularExpression(expression).matches(text) is matches


@pytest.mark.parametrize("expression", ["(", "[a", r"\1", "*a", "(?=a)", "(?<=a)", "a{1001}", r"\pL{500}"])
def test_invalid_expressions_are_refused(expression: str) -> None:
    with pytest.raises(RegexError):
        RegularExpression(expression)


def test_an_expression_that_is_too_long_is_refused() -> None:
    assert RegularExpression("a" * LENGTH_MAX).matches("a" * LENGTH_MAX)
    with pytest.raises(RegexError, match="more than 1000 characters"):
        RegularExpression("a" * (LENGTH_MAX + 1))


def test_the_error_has_a_reason() -> None:
    with pytest.raises(RegexError, match=r"missing \)"):
        RegularExpression("orders(")


@pytest.mark.parametrize("expression", ["(a+)+$", "(a|a)*b", "(.*)(.*)(.*)(.*)[^a]", "(a?){200}a{200}"])
def test_expressions_with_exponential_time_elsewhere_are_cheap(expression: str) -> None:
    assert not RegularExpression(expression).matches("a" * 100 + "-" * 149 + "a")
