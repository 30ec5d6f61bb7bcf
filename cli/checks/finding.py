"""The result of one check, with its remedy. Pure."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Result(Enum):
    """OK and WARNING let a broker work; with a FAILURE it cannot, or clients cannot reach it."""

    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"


class Finding(NamedTuple):
    """One line of the report."""

    check: str
    result: Result
    detail: str
    remedy: str | None = None
    """A sentence for the user; None if nothing is wrong."""


def ok(check: str, detail: str) -> Finding:
    return Finding(check, Result.OK, detail)


def warning(check: str, detail: str, remedy: str) -> Finding:
    return Finding(check, Result.WARNING, detail, remedy)


def failure(check: str, detail: str, remedy: str) -> Finding:
    return Finding(check, Result.FAILURE, detail, remedy)
