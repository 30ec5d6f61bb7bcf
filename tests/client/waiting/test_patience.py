"""How long an operation is retried."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.client.waiting.backoff import Backoff
from barnabas.client.waiting.patience import Patience
from tests.client.virtual_world import run_virtually


def patience(give_up_ms: int) -> Patience:
    return Patience(Backoff(100, 400, lambda: 0.5), give_up_ms)


async def pauses_of(tried: Patience, error: Exception, give_up_ms: int | None = None) -> list[float]:
    """The pauses until it raises."""
    loop, pauses = asyncio.get_running_loop(), list[float]()
    while True:
        begun = loop.time()
        try:
            await tried.pause(error, give_up_ms=give_up_ms)
        except ValueError as raised:
            assert raised is error
            return pauses
        pauses.append(round(loop.time() - begun, 3))


@pytest.mark.parametrize(
    ("give_up_ms", "shorter_ms", "expected"),
    [
        (1_500, None, [0.1, 0.2, 0.4, 0.4, 0.4]),
        (1_499, None, [0.1, 0.2, 0.4, 0.4]),
        (60_000, 350, [0.1, 0.2]),
        (100, 60_000, [0.1]),
        (50, None, []),
    ],
)
def test_pauses_grow_until_the_error_is_raised(
    give_up_ms: int, shorter_ms: int | None, expected: list[float]
) -> None:
    async def main() -> None:
        assert await pauses_of(patience(give_up_ms), ValueError(), shorter_ms) == expected

    run_virtually(main())


def test_a_success_resets_pauses_and_limit() -> None:
    async def main() -> None:
        tried, error = patience(350), ValueError()
        await tried.pause(error)
        await tried.pause(error)
        tried.reset()
        assert await pauses_of(tried, error) == [0.1, 0.2]

    run_virtually(main())


def test_the_shorter_limit_counts_from_its_first_error() -> None:
    async def main() -> None:
        tried = patience(60_000)
        for _ in range(5):
            await tried.pause(OSError())
        assert await pauses_of(tried, ValueError(), 1_200) == [0.4, 0.4, 0.4]

    run_virtually(main())


def test_alternating_errors_are_limited_as_well() -> None:
    async def main() -> None:
        tried = patience(1_500)
        with pytest.raises(OSError, match="away"):
            for _ in range(10):
                await tried.pause(ValueError(), give_up_ms=400)
                await tried.pause(OSError("away"))

    run_virtually(main())
