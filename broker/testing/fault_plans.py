"""Fault plans as JSON. APIs and errors have Kafka's names: ShareFetch, REQUEST_TIMED_OUT. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from barnabas.broker.testing.faults import FaultKind, FaultPlan
from barnabas.broker.testing.fields import Fields, Refused
from barnabas.protocol.api import APIS, ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.nearest_name import nearest_name

DELAY_MS_MAX: Final = 24 * 3600 * 1000
"""The longest delay of a request, a day."""
TIMES_MAX: Final = 1_000_000
"""The most hits of a fault with a limit."""


def read_plan(given: Fields) -> FaultPlan:
    """The plan in the fields; Refused for a wrong one."""
    kind = _kind(given.text("kind"))
    return FaultPlan(
        kind=kind,
        api=_api(given.text("api")) if given.has("api") else None,
        group=given.text("group") if given.has("group") else None,
        topic=given.text("topic") if given.has("topic") else None,
        times=given.integer("times", least=1, most=TIMES_MAX) if given.has("times") else None,
        delay_ms=given.integer("delay_ms", least=1, most=DELAY_MS_MAX) if kind is FaultKind.DELAY else 0,
        error=_error(given.text("error")) if kind is FaultKind.ERROR else ErrorCode.none,
    )


def shown_plan(plan: FaultPlan) -> dict[str, object]:
    """The plan's fields, as `read_plan` reads them; those that are not set are left out."""
    shown: dict[str, object] = {
        "kind": plan.kind.value,
        "api": None if plan.api is None else api_name(plan.api),
        "group": plan.group,
        "topic": plan.topic,
        "times": plan.times,
        "delay_ms": plan.delay_ms or None,
        "error": None if plan.error is ErrorCode.none else plan.error.name.upper(),
    }
    return {name: value for name, value in shown.items() if value is not None}


def api_name(api: ApiKey) -> str:
    """Kafka's name of an API."""
    return api.name.title().replace("_", "")


def _kind(text: str) -> FaultKind:
    if text not in list(FaultKind):
        raise Refused(f"kind is {text!r}; it must be one of {', '.join(FaultKind)}.")
    return FaultKind(text)


def _api(text: str) -> ApiKey:
    known = {api_name(api): api for api in APIS}
    if text not in known:
        raise Refused(f"There is no API {text}.{_hint(text, known)}")
    return known[text]


def _error(text: str) -> ErrorCode:
    known = {code.name.upper(): code for code in ErrorCode if code is not ErrorCode.none}
    if text not in known:
        raise Refused(f"There is no error {text}.{_hint(text, known)}")
    return known[text]


def _hint(text: str, known: Iterable[str]) -> str:
    nearest = nearest_name(text, known)
    return f" Is {nearest} meant?" if nearest else ""
