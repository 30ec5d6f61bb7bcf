"""A small, reproducible sample of the fuzzing; `make fuzz` runs longer."""

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.fuzz.strategies import inputs
from tests.fuzz.targets import SEEDS, TARGETS

EXAMPLES = 60


@pytest.mark.parametrize("name", TARGETS)
def test_any_bytes_give_a_value_or_the_declared_error(name: str) -> None:
    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(inputs(SEEDS.get(name, [])))
    def feed(data: bytes) -> None:
        TARGETS[name](data)

    feed()


@pytest.mark.parametrize("name", SEEDS)
def test_written_data_is_accepted(name: str) -> None:
    for seed in SEEDS[name]:
        assert TARGETS[name](seed)
