"""Waiting for conditions: every wait has a deadline and names its condition."""

import time
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")

DEADLINE_SECONDS = 30.0
PAUSE_SECONDS = 0.02


def eventually(
    attempt: Callable[[], Result], *, awaited: str, deadline_seconds: float = DEADLINE_SECONDS
) -> Result:
    """Call `attempt` until its result is truthy, and return that; AssertionError after the deadline, with
    `awaited`.
    """
    deadline = time.monotonic() + deadline_seconds
    while not (result := attempt()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{awaited}: not within {deadline_seconds} s, last seen {result!r}")
        time.sleep(PAUSE_SECONDS)
    return result


def repeatedly(attempt: Callable[[], object], *, seconds: float) -> None:
    """Call `attempt`, which takes a moment itself, for a span of time, to show that a condition holds all the
    time.
    """
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        attempt()
