"""The value of `sasl.jaas.config`: a Java class, a word, and options. Only the options matter here. Pure."""

import re
from collections.abc import Mapping
from typing import Final

from barnabas.broker.security.errors import SecuritySettingError

_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<word>[A-Za-z0-9._$-]+)|(?P<sign>[=;])"""
    r"""|"(?P<double>(?:\\.|[^"\\])*)"|'(?P<single>(?:\\.|[^'\\])*)')""",
    re.DOTALL,
)
_FLAGS: Final = frozenset({"required", "requisite", "sufficient", "optional"})
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED: Final = {"n": "\n", "t": "\t", "r": "\r"}


def jaas_options(setting: str, text: str) -> Mapping[str, str]:
    """The options of the only entry. Raises `SecuritySettingError`, which contains nothing of the text."""
    tokens = _tokens(setting, text)
    if len(tokens) < 3 or tokens[0][0] != "word" or tokens[1][1].lower() not in _FLAGS:
        raise SecuritySettingError(f'{setting} is not of the form: Class required name="value";')
    if tokens[-1] != ("sign", ";"):
        raise SecuritySettingError(f"{setting} does not end with a semicolon")
    options: dict[str, str] = {}
    rest = tokens[2:-1]
    for position in range(0, len(rest), 3):
        match rest[position : position + 3]:
            case [(_, name), ("sign", "="), (kind, value)] if kind != "sign":
                options[name] = value
            case _:
                number = position // 3 + 1
                raise SecuritySettingError(
                    f'{setting}: its option number {number} is not of the form name="value"'
                )
    return options


def _tokens(setting: str, text: str) -> list[tuple[str, str]]:
    """(kind, text) of each token."""
    tokens: list[tuple[str, str]] = []
    text = text.strip()
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise SecuritySettingError(
                f"{setting} has a sign at position {position + 1} that is not understood"
            )
        position = match.end()
        kind = str(match.lastgroup)
        if kind == "comment":
            continue
        token = match[kind]
        if kind in ("double", "single"):
            kind, token = "text", _ESCAPE.sub(lambda found: _ESCAPED.get(found[1], found[1]), token)
        tokens.append((kind, token))
    return tokens
