"""A check that errors are freed as soon as nobody needs them, not when the garbage collector comes by."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def nothing_left_to_the_collector() -> Generator[None]:
    """Fails if the block leaves an error or a frame that only the garbage collector can free."""
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield
        gc.collect()
        left = Counter(
            found.f_code.co_qualname if isinstance(found, FrameType) else repr(found)
            for found in gc.garbage
            if isinstance(found, BaseException | FrameType)
        )
        assert not left
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
