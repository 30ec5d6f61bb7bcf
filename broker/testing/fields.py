"""The fields of a JSON object that a test sends, read with one clear error for each mistake. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from barnabas.protocol.nearest_name import nearest_name


class Refused(Exception):  # noqa: N818  named after its event
    """A wrong request of a test; with `is_missing` it names a missing thing. The message explains it."""

    def __init__(self, message: str, *, is_missing: bool = False) -> None:
        super().__init__(message)
        self.is_missing = is_missing


class Fields:
    """Reads each field once. Raises Refused for a value of the wrong type or out of bounds."""

    def __init__(self, given: Mapping[str, object]) -> None:
        self._given = given
        self._known: set[str] = set()

    def has(self, name: str) -> bool:
        """Whether the field was given, and not null."""
        self._known.add(name)
        return self._given.get(name) is not None

    def integer(self, name: str, *, least: int, most: int) -> int:
        """A whole number; required."""
        self._known.add(name)
        value = self._given.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise Refused(f"{name} is {value!r}; it must be a whole number from {least} to {most}.")
        return value

    def flag(self, name: str) -> bool:
        """True or false; false if it was not given."""
        self._known.add(name)
        value = self._given.get(name, False)
        if not isinstance(value, bool):
            raise Refused(f"{name} is {value!r}; it must be true or false.")
        return value

    def text(self, name: str) -> str:
        """A text that is not empty; required."""
        self._known.add(name)
        value = self._given.get(name)
        if not isinstance(value, str) or not value:
            raise Refused(f"{name} is {value!r}; it must be a text.")
        return value

    def texts(self, name: str) -> dict[str, str]:
        """An object whose values are texts; empty if it was not given."""
        self._known.add(name)
        value = self._given.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise Refused(f"{name} is {value!r}; it must be an object.")
        items = cast("dict[str, object]", value)
        found = {key: item for key, item in items.items() if isinstance(item, str)}
        if len(found) < len(items):
            raise Refused(f"{name} is {value!r}; all of its values must be texts.")
        return found

    def check_all_known(self) -> None:
        """Raises Refused if a field was given that was not read."""
        for name in self._given:
            if name not in self._known:
                nearest = nearest_name(name, self._known)
                hint = f" Is {nearest} meant?" if nearest else ""
                raise Refused(f"There is no field {name}.{hint}")
