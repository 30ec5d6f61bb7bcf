"""Waits of tests."""

from __future__ import annotations

import pytest

from tests.clients.polling import eventually


def test_a_wait_ends_with_its_condition() -> None:
    results = iter([0, None, "", 7])
    assert eventually(lambda: next(results), awaited="there is a result") == 7


def test_a_wait_that_the_limit_of_the_test_ends_names_its_condition_and_the_last_result() -> None:
    results: list[list[int]] = [[]]

    def attempt() -> list[int]:
        return results.pop() if results else pytest.fail("Timeout")

    with pytest.raises(pytest.fail.Exception) as ended:
        eventually(attempt, awaited="there is a result")
    assert ended.value.__notes__ == ["while waiting until there is a result; last seen: []"]
