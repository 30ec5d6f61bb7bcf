"""The way of one request does not become longer unnoticed."""

from __future__ import annotations

import pytest
from benchmarks.calls import Calls, count_calls

pytestmark = pytest.mark.interpreted

FUNCTIONS = {
    "ShareFetch, accept one and acquire one": 150,
    "Produce of one record": 60,
    "ShareAcknowledge": 98,
    "Fetch of one record": 130,
    "ShareGroupHeartbeat": 61,
}
"""The functions of Python that one request calls, in Python 3.11; later versions call some fewer."""
GROWTH_MAX = 1.05


@pytest.fixture(scope="module")
def counted() -> dict[str, Calls]:
    return count_calls()


@pytest.mark.parametrize("work", FUNCTIONS)
def test_a_request_calls_no_more_functions_than_before(counted: dict[str, Calls], work: str) -> None:
    assert counted[work].functions <= GROWTH_MAX * FUNCTIONS[work], counted[work]
