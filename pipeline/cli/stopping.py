"""SIGTERM and SIGINT as a wish: the first one lets a command finish what it is at, the second one ends it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class StopWish:
    """How often the command was asked to stop, by signals."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self._hurried = threading.Event()

    @property
    def is_asked(self) -> bool:
        return self._asked.is_set()

    @property
    def is_hurried(self) -> bool:
        """Whether it was asked more than once."""
        return self._hurried.is_set()

    def note(self) -> None:
        """It was asked once more."""
        if self._asked.is_set():
            self._hurried.set()
        self._asked.set()


@contextmanager
def stop_wish() -> Generator[StopWish]:
    """While the block runs, signals are noted and interrupt nothing, which a call into the JVM would not
    survive. The third one does what it did before."""
    wish = StopWish()
    before: dict[int, Callable[[int, FrameType | None], Any] | int | None] = {}

    def note(number: int, frame: FrameType | None) -> None:
        earlier = before[number]
        if wish.is_hurried and callable(earlier):
            earlier(number, frame)
        wish.note()

    for one in (signal.SIGINT, signal.SIGTERM):
        before[one] = signal.signal(one, note)
    try:
        yield wish
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
