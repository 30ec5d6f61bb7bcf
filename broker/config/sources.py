"""Reads settings from a `.properties` or TOML file, the environment, and flags.

Each reader returns the unchanged texts by the unchanged names; `loading.py` interprets them.

- `.properties`: Java's format (comments with # or !, `=`, `:` or blank after the name, backslash escapes,
  lines continued by a backslash), so that Kafka's `server.properties` can be used unchanged.
- TOML: tables and dotted keys are joined by dots, arrays become lists. A name that is also the start of
  another one (`log.flush` and `log.flush.interval.ms`) must be quoted, because a TOML key cannot be both a
  value and a table.
- environment: `BARNABAS_LOG_RETENTION_MS` is log.retention.ms. An empty variable counts as not set, and so
  do the variables that Kubernetes sets in every pod for a Service named `barnabas` or `barnabas-...`, and
  those of the commands that ask a broker.
- environment of Apache Kafka's container image: `kafka_image.py`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from barnabas.broker.config.errors import ConfigError

ENVIRONMENT_PREFIX = "BARNABAS_"

DEFAULTS_VARIABLE = "BARNABAS_DEFAULTS_FILE"
"""Names a file whose settings everything else overrides: the defaults of the container image."""

_NO_SETTINGS = frozenset({"BARNABAS_CLIENT_BOOTSTRAP", "BARNABAS_CLIENT_SECURITY", DEFAULTS_VARIABLE})
"""The first two are options of the commands that ask a broker."""

_OF_A_SERVICE = re.compile(
    r"(\w+_)?(SERVICE_HOST=.*|SERVICE_PORT(_\w+)?=\d+|PORT(_\d+_[A-Z]+)?=[a-z]+://.*"
    r"|PORT_\d+_[A-Z]+_(PROTO|PORT|ADDR)=.*)"
)
"""A variable of a Service without the prefix, with its value: Kubernetes sets
`BARNABAS_PORT=tcp://10.0.0.1:9092` for a Service `barnabas`.
"""

_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_NAME_AND_VALUE = re.compile(r"((?:\\.|[^\\=:\s])*)\s*[=:]?\s*(.*)", re.DOTALL)


def read_file(path: str) -> Mapping[str, str]:
    """The settings in the file at `path`: TOML if its name ends in `.toml`, else Java properties."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"The configuration file {path} cannot be read: {error}.") from None
    return _parse_toml(path, text) if path.endswith(".toml") else parse_properties(text)


def parse_properties(text: str) -> Mapping[str, str]:
    """Java's properties format; if a name is given twice, the last value counts."""
    settings: dict[str, str] = {}
    for line in _logical_lines(text):
        match = _NAME_AND_VALUE.fullmatch(line)
        assert match is not None, "the pattern matches every line"
        settings[_unescape(match[1])] = _unescape(match[2])
    return settings


def _logical_lines(text: str) -> Iterator[str]:
    """The lines without comments; an odd number of backslashes at the end joins a line with the next."""
    joined = ""
    for line in text.splitlines():
        stripped = line.lstrip()
        if not joined and (not stripped or stripped[0] in "#!"):
            continue
        joined += stripped
        if (len(joined) - len(joined.rstrip("\\"))) % 2:
            joined = joined[:-1]
            continue
        yield joined
        joined = ""
    if joined:
        yield joined


def _unescape(text: str) -> str:
    return _ESCAPE.sub(_escaped_character, text)


def _escaped_character(match: re.Match[str]) -> str:
    escape = match[1]
    return chr(int(escape[1:], 16)) if len(escape) == 5 else _ESCAPED.get(escape, escape)


def _parse_toml(path: str, text: str) -> Mapping[str, str]:
    import tomllib  # few brokers have a file in this format

    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"The configuration file {path} is not valid TOML: {error}.") from None
    return dict(_flatten(document, ""))


def _flatten(table: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, str]]:
    for key, value in table.items():
        name = prefix + key
        if isinstance(value, dict):
            yield from _flatten(cast("dict[str, Any]", value), f"{name}.")
        else:
            yield name, _toml_text(name, value)


def _toml_text(name: str, value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str() | int() | float():
            return str(value)
        case list():
            return ",".join(_toml_text(name, item) for item in cast("Iterable[Any]", value))
        case _:
            raise ConfigError(
                f"{name} is a {type(value).__name__}, but a setting is text, a number, true, false or a list."
            )


def find_variables(environ: Mapping[str, str], names: Mapping[str, str]) -> Mapping[str, str]:
    """The settings in the environment, each with the variable that sets it.

    Variables of clients are left out. `names` maps variables to settings. An unknown variable with the prefix
    is returned under the name that it would set, so that it is refused like any other typo.
    """
    variables: dict[str, str] = {}
    for variable, value in without_services(environ, ENVIRONMENT_PREFIX).items():
        if variable.startswith(ENVIRONMENT_PREFIX) and value and variable not in _NO_SETTINGS:
            rest = variable.removeprefix(ENVIRONMENT_PREFIX)
            variables[names.get(variable, rest.lower().replace("_", "."))] = variable
    return variables


def without_services(environ: Mapping[str, str], prefix: str) -> Mapping[str, str]:
    """The environment without the variables that Kubernetes sets for Services whose names begin with
    `prefix`.
    """
    return {
        variable: value
        for variable, value in environ.items()
        if not variable.startswith(prefix)
        or not _OF_A_SERVICE.fullmatch(f"{variable.removeprefix(prefix)}={value}")
    }


def read_flags(overrides: Sequence[str]) -> Mapping[str, str]:
    """The settings of `--set NAME=VALUE` flags."""
    settings: dict[str, str] = {}
    for flag in overrides:
        name, equals, value = flag.partition("=")
        if not equals or not name.strip():
            raise ConfigError(f"--set {flag} is not of the form NAME=VALUE.")
        settings[name.strip()] = value
    return settings
