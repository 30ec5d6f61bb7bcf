"""Waiting for conditions. A wait of a test ends when its condition holds, or with the limit of the test."""

import math
import time
from collections.abc import Callable
from typing import Final, TypeVar

Result = TypeVar("Result")

PAUSE_SECONDS = 0.02
SECONDS_MAX: Final = 600.0
"""For calls that want a limit of their own: that of a test (pyproject.toml), so it never ends them first."""


def eventually(attempt: Callable[[], Result], *, awaited: str, deadline_seconds: float = math.inf) -> Result:
    """Calls `attempt` until its result is truthy, and returns that. Only benchmarks have a deadline: then
    AssertionError. Every error on the way has a note with `awaited` and the last result.
    """
    deadline = time.monotonic() + deadline_seconds
    result = None
    try:
        while not (result := attempt()):
            assert time.monotonic() < deadline, f"not within {deadline_seconds} s"
            time.sleep(PAUSE_SECONDS)
    except BaseException as error:
        error.add_note(f"while waiting until {awaited}; last seen: {result!r}")
        raise
    return result
