"""Named tuples that are made without a call of Python, for the code that runs at every request.

The class of a named tuple has its `__new__` in Python, which costs more than the tuple itself.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar, cast

_Named = TypeVar("_Named", bound=tuple[object, ...])


def maker(kind: type[_Named]) -> Callable[[tuple[object, ...]], _Named]:
    """Makes a `kind` from a tuple of all its fields, whose number and types are not checked."""
    return cast("Callable[[tuple[object, ...]], _Named]", partial(tuple[object].__new__, kind))
