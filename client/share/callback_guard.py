"""Keeps a callback from calling back into its client, except for `wakeup`."""

from __future__ import annotations

from barnabas.client.errors import MisuseError


class CallbackGuard:
    """`with guard:` around the callback; `check` at the start of each method."""

    __slots__ = ("_is_inside", "_name")

    def __init__(self, name: str) -> None:
        """`name` is that of the callback."""
        self._name = name
        self._is_inside = False

    def __enter__(self) -> None:
        self._is_inside = True

    def __exit__(self, *_: object) -> None:
        self._is_inside = False

    def check(self) -> None:
        """Raises `MisuseError` inside the callback."""
        if self._is_inside:
            raise MisuseError(f"Inside {self._name} the only method that may be called is wakeup.")
