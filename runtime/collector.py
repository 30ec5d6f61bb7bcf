"""Keeps Python's garbage collector away from objects that live as long as the process.

A full collection visits every object. A broker has more than a hundred thousand, nearly all of them in
modules and message classes, which are never garbage. Each visit would stall the loop for tens of
milliseconds. Requests leave few reference cycles, so collections are also made rarer. While a process loads
its modules, collections would find next to nothing and take a twentieth of its start.
"""

import gc
from collections.abc import Generator
from contextlib import contextmanager

_NEW_OBJECTS_PER_COLLECTION = 20_000
"""Objects allocated and not freed before the youngest generation is collected; Python's default is 700."""

_YOUNG_COLLECTIONS_PER_OLDER = 5
"""Visiting a hundred thousand objects takes 20 ms; a large request creates several times that number."""

_OLDER_COLLECTIONS_PER_FULL = 80


@contextmanager
def without_collections() -> Generator[None]:
    """Make no collections inside, where modules are loaded. Later ones exclude the objects that exist at the
    end.
    """
    gc.disable()
    try:
        yield
    finally:
        keep_out_of_collections()
        gc.enable()


def keep_out_of_collections() -> None:
    """Exclude all objects that exist now from later collections, which become rarer, too."""
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS_PER_COLLECTION, _YOUNG_COLLECTIONS_PER_OLDER, _OLDER_COLLECTIONS_PER_FULL)
