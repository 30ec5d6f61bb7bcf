"""The principal of a client certificate, by the rules of `ssl.principal.mapping.rules` (KIP-371). Pure.

A rule is `RULE:pattern/replacement/`, with L or U at the end for lower or upper case. The first rule whose
pattern matches the whole distinguished name gives the principal's name; `DEFAULT` matches any name, and
leaves it unchanged. The patterns are RE2's, which no name of a client can make slow.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from typing import Any, Final, NamedTuple

from barnabas.broker.security.errors import SecuritySettingError
from barnabas.broker.security.principal import NotIdentified, Principal

SETTING: Final = "ssl.principal.mapping.rules"

_RULE: Final = r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?).*?|(.*?)"
_SPLITTER: Final = re.compile(rf"\s*(?P<rule>{_RULE})\s*(?:,\s*|$)")
_REFERENCE: Final = re.compile(r"\\(.)|\$(\d+)", re.DOTALL)


class _Rule(NamedTuple):
    pattern: re.Pattern[str] | None
    """None for DEFAULT."""
    replacement: str
    change_case: Callable[[str], str]

    def apply(self, name: str) -> str | None:
        if self.pattern is None:
            return name
        if self.pattern.fullmatch(name) is None:
            return None
        # As in Java: each part of the name that the pattern matches is replaced.
        replaced = self.pattern.sub(partial(_expand, self.replacement), name)
        return self.change_case(replaced)


class PrincipalMapping:
    """The rules in their order. Raises `SecuritySettingError` for a text that contains none."""

    def __init__(self, text: str) -> None:
        self._rules: Sequence[_Rule] = tuple(_parse(text))
        if not self._rules:
            raise SecuritySettingError(f"{SETTING} has no rule")

    def principal(self, distinguished_name: str) -> Principal:
        """Raises `NotIdentified`."""
        for rule in self._rules:
            name = rule.apply(distinguished_name)
            if name is not None:
                return Principal(name)
        raise NotIdentified(f"no rule of {SETTING} applies to {distinguished_name}")


def _parse(text: str) -> Iterator[_Rule]:
    text = text.strip()
    position = 0
    while position < len(text):
        match = _SPLITTER.match(text, position)
        assert match is not None, "the last alternative matches any text"
        position = match.end()
        _, default, pattern, replacement, case, other = match.groups()
        if other:
            raise SecuritySettingError(
                f"{SETTING}: {other!r} is neither DEFAULT nor RULE:pattern/replacement/ with L, U or nothing"
            )
        if default is not None:
            yield _Rule(None, "", str)
        elif pattern is not None:
            yield _Rule(_compile(pattern), replacement, {"L": str.lower, "U": str.upper}.get(case, str))


def _compile(pattern: str) -> re.Pattern[str]:
    re2: Any = import_module("re2")  # it has no types, and few brokers need it
    options = re2.Options()
    options.log_errors = False
    try:
        compiled: re.Pattern[str] = re2.compile(pattern, options)
    except re2.error as error:
        raise SecuritySettingError(f"{SETTING}: RE2 cannot use the pattern {pattern!r}: {error}") from None
    return compiled


def _expand(replacement: str, match: re.Match[str]) -> str:
    """The replacement with the parts of the match: `$1` is the first group, and a backslash protects a sign.
    A reference takes as many digits as there are groups; without such a group it stands for itself.
    """
    groups: Sequence[str | None] = (match.group(0), *match.groups())

    def part(found: re.Match[str]) -> str:
        if found[1] is not None:
            return found[1]
        digits = found[2]
        size = next((size for size in range(len(digits), 0, -1) if int(digits[:size]) < len(groups)), 0)
        if not size:
            return f"${digits}"
        return (groups[int(digits[:size])] or "") + digits[size:]

    return _REFERENCE.sub(part, replacement)
