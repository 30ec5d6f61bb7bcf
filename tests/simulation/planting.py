"""Plants a bug: a function with it replaces one of the broker's, as long as the bug is planted."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from typing import Any
from unittest.mock import patch

Plant = Callable[[], AbstractContextManager[None]]


def planted(owner: object, name: str) -> Callable[[Callable[..., Any]], Plant]:
    """The decorated function replaces `name` of the module or class `owner`."""

    def plant_of(with_bug: Callable[..., Any]) -> Plant:
        @contextmanager
        def plant() -> Generator[None]:
            with patch.object(owner, name, with_bug):
                yield

        return wraps(with_bug)(plant)

    return plant_of
