"""Makes docs/reference/apis.md from the table of APIs and the docstrings of their handlers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Final, NamedTuple

from barnabas.protocol.api import APIS, ApiKey, ApiSpec
from tests.reference.markdown import table

_HEAD: Final = """\
# All APIs

This page is made from the table of the served APIs and from their handlers (`python -m tests.reference`).
ApiVersions answers with the same versions. [Not supported](../not-supported.md) explains the APIs that are
missing.

- **Flexible** is the first version with compact lengths and tagged fields (KIP-482).
- Keys from 10000 on are Barnabas's own ([extensions of the protocol](../protocol.md)).
"""

_BETWEEN_BROKERS: Final = """\
## APIs between brokers

Only the listener of `inter.broker.listener.name` serves and advertises these, with
`inter.broker.apis.enable=true`.
"""

_FIRST_SENTENCE: Final = re.compile(r"(\w+) \(([^)]*)\)(?:: | )((?:[^.]|\.(?=\S))*)\.?", re.DOTALL)


class _Docstring(NamedTuple):
    """The first sentence of a handler's docstring, in its parts."""

    name: str
    proposals: tuple[str, ...]
    """The KIPs."""
    purpose: str


def rendered() -> str:
    """The page."""
    public = [spec for spec in APIS.values() if not spec.inter_broker]
    between = [spec for spec in APIS.values() if spec.inter_broker]
    missing = [key for key in ApiKey if key not in APIS]
    lines = [
        _HEAD,
        *_table(public),
        "",
        _BETWEEN_BROKERS,
        *_table(between),
        "",
        "## APIs that are not served",
        "",
        ", ".join(f"{_camel_case(key.name)} ({key.value})" for key in missing) + ".",
    ]
    return "\n".join(lines) + "\n"


def docstring(spec: ApiSpec) -> _Docstring:
    """Raises `AssertionError` if the docstring does not begin with the API's name and a parenthesis."""
    text = import_module(f"barnabas.broker.handlers.{spec.name}").__doc__ or ""
    found = _FIRST_SENTENCE.match(text)
    assert found is not None, f"{spec.name}: the docstring begins with {text[:60]!r}"
    purpose = " ".join(found[3].split())
    return _Docstring(found[1], tuple(re.findall(r"KIP-\d+", found[2])), purpose)


def _table(specs: Iterable[ApiSpec]) -> Iterator[str]:
    return table(("key", "API", "versions", "flexible", "KIPs", "purpose"), map(_row, specs))


def _row(spec: ApiSpec) -> tuple[str, ...]:
    described = docstring(spec)
    proposals = ", ".join(described.proposals)
    return (
        str(spec.key.value),
        described.name,
        _versions(spec),
        _flexible(spec),
        proposals,
        described.purpose,
    )


def _versions(spec: ApiSpec) -> str:
    served = f"{spec.min_version} to {spec.max_version}" if spec.min_version < spec.max_version else ""
    text = served or str(spec.max_version)
    return (
        text if spec.advertised_min == spec.min_version else f"{text}; advertised from {spec.advertised_min}"
    )


def _flexible(spec: ApiSpec) -> str:
    return str(spec.flexible_version) if spec.flexible_version <= spec.max_version else "none"


def _camel_case(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))
