"""Options of the formats: strings under names whose case doesn't matter, as Spark passes them.

A source takes each of its options once and then calls `finish`, which refuses options that it didn't take: a
misspelt option is an error, and not a default.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NoReturn

from barnabas.pipeline.errors import OptionError
from barnabas.protocol.nearest_name import nearest_name

SPARK_OPTIONS: Final = frozenset({"path", "checkpointlocation", "queryname"})
"""Options that Spark itself adds to those of a format."""

_TRUTH: Final = {"true": True, "false": False}


class Options:
    """The options of a source. Each method takes one of them; `OptionError` if its value doesn't fit."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = {name.casefold(): value for name, value in given.items()}
        self._known: list[str] = []

    def text(self, name: str, default: str | None = None) -> str | None:
        """An option that may be missing."""
        self._known.append(name)
        return self._given.get(name.casefold(), default)

    def required(self, name: str, example: str) -> str:
        """An option that must be there, and not empty."""
        value = self.text(name)
        if value is None or not value.strip():
            raise OptionError(name, f"is needed, such as {example!r}")
        return value.strip()

    def names(self, name: str) -> list[str] | None:
        """Names with commas between them, without doubles; None if the option is missing."""
        value = self.text(name)
        if value is None:
            return None
        names = [name.strip() for name in value.split(",")]
        if not all(names):
            self._refuse(name, value, "names with commas between them")
        return list(dict.fromkeys(names))

    def integer(self, name: str, default: int, *, least: int = 0, most: int = 2**63 - 1) -> int:
        """A whole number between `least` and `most`, both inclusive."""
        value = self.text(name)
        if value is None:
            return default
        try:
            number = int(value)
        except ValueError:
            self._refuse(name, value, "a whole number")
        if not least <= number <= most:
            self._refuse(name, value, f"a whole number from {least} to {most}")
        return number

    def optional_integer(self, name: str, *, least: int = 0, most: int = 2**63 - 1) -> int | None:
        """A whole number; None if the option is missing."""
        if name.casefold() not in self._given:
            self._known.append(name)
            return None
        return self.integer(name, least, least=least, most=most)

    def flag(self, name: str, *, default: bool) -> bool:
        """`true` or `false`."""
        value = self.text(name)
        if value is None:
            return default
        found = _TRUTH.get(value.strip().casefold())
        if found is None:
            self._refuse(name, value, "true or false")
        return found

    def choice(self, name: str, choices: Sequence[str], default: str) -> str:
        """One of several words, case ignored."""
        value = self.text(name)
        if value is None:
            return default
        for choice in choices:
            if choice.casefold() == value.strip().casefold():
                return choice
        return self._refuse(name, value, " or ".join(choices))

    def exclude(self, name: str, other: str) -> None:
        """Refuses the second of two options if both are given."""
        if self.text(name) is not None and self.text(other) is not None:
            raise OptionError(other, f"{name} is given too; give one of them")

    def prefixed(self, prefix: str) -> dict[str, str]:
        """All options whose names begin with `prefix`, by the rest of the name in lower case."""
        folded = prefix.casefold()
        found = {name: value for name, value in self._given.items() if name.startswith(folded)}
        self._known.extend(found)
        return {name[len(folded) :]: value for name, value in found.items()}

    def finish(self) -> None:
        """Refuses options that no method has taken."""
        known = {name.casefold(): name for name in self._known}
        for name in self._given:
            if name in known or name in SPARK_OPTIONS:
                continue
            near = nearest_name(name, known)
            hint = f"did you mean {known[near]}?" if near else f"there are {', '.join(self._known)}"
            raise OptionError(name, f"there is no such option; {hint}")

    def _refuse(self, name: str, value: str, wanted: str) -> NoReturn:
        raise OptionError(name, f"{value!r} is not {wanted}")


def require_choice(option: str, value: str, choices: Sequence[str]) -> None:
    """Raises `OptionError` unless the value is one of the choices."""
    if value not in choices:
        raise OptionError(option, f"{value!r} is not {' or '.join(choices)}")
