"""The simulation finds what it is there to find: each planted bug within 200 seeds, and what it says then."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from tests.simulation.planted_bugs import dropped_fsync, forgotten_back_offset, swapped_control_records
from tests.simulation.simulation import SHORT_MS, Failure, simulate

_SEEDS_MAX = 200


def first_failure(plant: Callable[[], AbstractContextManager[None]]) -> str:
    """What the first seed that fails has to say."""
    with plant():
        for seed in range(_SEEDS_MAX):
            try:
                simulate(str(seed))
            except Failure as failure:
                return str(failure)
    pytest.fail(f"not found in {_SEEDS_MAX} seeds")


@pytest.mark.parametrize(
    ("plant", "sign"),
    [
        pytest.param(dropped_fsync, "was confirmed", id="a dropped fsync"),
        pytest.param(swapped_control_records, "by the log", id="two control records swapped"),
        pytest.param(forgotten_back_offset, "back_offset=-1", id="a forgotten back offset"),
    ],
)
def test_a_planted_bug_is_found(plant: Callable[[], AbstractContextManager[None]], sign: str) -> None:
    report = first_failure(plant)
    assert sign in report.splitlines()[0], report


def test_a_failure_says_how_to_see_it_again() -> None:
    report = first_failure(forgotten_back_offset)
    seed, step = report.split(":")[0].split(", ")
    assert step.startswith("step ")
    again = f"make sim {seed.upper().replace(' ', '=')} LENGTH={SHORT_MS}"
    assert report.splitlines()[-1] == f"To see it again: {again}"
