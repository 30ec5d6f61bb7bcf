"""Keeping Python's garbage collector off the heap that stays.

A full collection looks at every object. Of a broker's hundred thousand and more nearly all belong to
modules and message classes, which are never garbage, and looking at them stalls the loop for tens of
milliseconds, time and again. Requests leave next to no cycles behind, so collections are also made rarer.
"""

import gc

_NEW_OBJECTS_PER_COLLECTION = 20_000
"""Objects made and not freed before the youngest are looked at; Python's own default is 700."""

_YOUNG_COLLECTIONS_PER_OLDER = 5
"""A look at a hundred thousand objects takes 20 milliseconds; a large request makes several times as many."""

_OLDER_COLLECTIONS_PER_FULL = 80


def keep_out_of_collections() -> None:
    """Whatever exists now is there to stay: collections pass over it from here on."""
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS_PER_COLLECTION, _YOUNG_COLLECTIONS_PER_OLDER, _OLDER_COLLECTIONS_PER_FULL)
