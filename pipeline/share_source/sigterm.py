"""SIGTERM as an orderly end of the process in which Spark runs a source's reader.

Spark sends it, closes the reader's connection, and sends it again. The first one unwinds the stack, by which
the reader is stopped; what comes while that takes its time must not cut it short.
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
"""For so long after it has begun an orderly end is not cut short."""


class _Unwinding:
    """Passes over signals for a while; after that they end the process."""

    def __init__(self) -> None:
        self._until = time.monotonic() + PATIENCE_SECONDS

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        if time.monotonic() >= self._until:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)


def unwind_on_sigterm() -> None:
    """Let SIGTERM unwind the stack, unless somebody else has a use for it."""
    is_ours = threading.current_thread() is threading.main_thread()
    if is_ours and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _unwind)


@contextmanager
def in_peace() -> Generator[None]:
    """Do what SIGTERM is to bring about, undisturbed by another one. Afterwards it is what it was first."""
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
