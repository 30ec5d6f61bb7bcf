"""SIGTERM and SIGINT: the first one lets a command finish its work in progress, the second one ends it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class StopRequest:
    """Whether signals have asked the command to stop, and to hurry."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self._hurried = threading.Event()

    @property
    def is_asked(self) -> bool:
        return self._asked.is_set()

    @property
    def is_hurried(self) -> bool:
        """Whether there was more than one signal."""
        return self._hurried.is_set()

    def note(self) -> None:
        """Counts one more signal."""
        if self._asked.is_set():
            self._hurried.set()
        self._asked.set()


@contextmanager
def stop_request() -> Generator[StopRequest]:
    """While the block runs, signals only set the request: an interrupted call into the JVM would break its
    connection. The third signal runs the earlier handler."""
    request = StopRequest()
    before: dict[int, Callable[[int, FrameType | None], Any] | int | None] = {}

    def note(number: int, frame: FrameType | None) -> None:
        earlier = before[number]
        if request.is_hurried and callable(earlier):
            earlier(number, frame)
        request.note()

    for signal_number in (signal.SIGINT, signal.SIGTERM):
        before[signal_number] = signal.signal(signal_number, note)
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
