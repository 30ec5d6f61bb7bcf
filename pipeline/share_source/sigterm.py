"""SIGTERM as a clean end of the process in which Spark runs a source's reader.

Spark sends it, closes the reader's connection, and sends it again. The first signal unwinds the stack, which
stops the reader; further signals must not interrupt that.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType
from typing import Final

PATIENCE_SECONDS: Final = 20.0
"""The time from its beginning in which a clean end is not interrupted."""


class _Unwinding:
    """Ignores signals for a while; after that they end the process."""

    def __init__(self) -> None:
        self._until = time.monotonic() + PATIENCE_SECONDS

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        if time.monotonic() >= self._until:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)


def unwind_on_sigterm() -> None:
    """Lets SIGTERM unwind the stack, unless other code has a handler for it."""
    is_ours = threading.current_thread() is threading.main_thread()
    if is_ours and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _unwind)


@contextmanager
def ignoring_sigterm() -> Generator[None]:
    """Runs the block without interruption by SIGTERM. Afterwards its handler is the earlier one."""
    is_main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGTERM)
    if not (is_main and (handler is _unwind or isinstance(handler, _Unwinding))):
        yield
        return
    signal.signal(signal.SIGTERM, _Unwinding())
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _unwind(number: int, _frame: FrameType | None) -> None:
    signal.signal(number, _Unwinding())
    sys.exit(128 + number)
