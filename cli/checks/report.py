"""Prints the findings of `barnabas doctor` as they are made."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Final

from barnabas.cli.checks.client_view import check_broker
from barnabas.cli.checks.disk import check_directory
from barnabas.cli.checks.finding import Finding, Result
from barnabas.cli.checks.machine import check_clock, check_memory, check_open_files, check_port
from barnabas.cli.printing import Printer
from barnabas.cli.target import Target

_MARKS: Final = {Result.OK: "ok     ", Result.WARNING: "warning", Result.FAILURE: "FAILURE"}


async def run_checks(
    target: Target, printer: Printer, listener: tuple[str, int] | None, directory: str | None
) -> bool:
    """Whether nothing failed. The listener and the directory are those of a broker on this machine, or None.

    A port that is in use is no failure if a broker answers there.
    """
    has_failed = False
    async for finding in _findings(target, listener, directory):
        has_failed = has_failed or finding.result is Result.FAILURE
        _print(printer, finding)
    return not has_failed


async def _findings(
    target: Target, listener: tuple[str, int] | None, directory: str | None
) -> AsyncIterator[Finding]:
    if directory is not None:
        for finding in _of_this_machine(directory):
            yield finding
    seen_by_client = [finding async for finding in check_broker(target)]
    answers = any(finding.check == "broker" and finding.result is Result.OK for finding in seen_by_client)
    if listener is not None and not answers:
        port = check_port(*listener)
        yield port
        if port.result is Result.OK:
            seen_by_client = [_not_started(target)]
    for finding in seen_by_client:
        yield finding


def _of_this_machine(directory: str) -> Iterable[Finding]:
    yield from check_directory(directory)
    yield check_open_files()
    yield check_memory()
    yield check_clock()


def _not_started(target: Target) -> Finding:
    """Nothing is wrong with a broker that was not started yet."""
    return Finding(
        "broker",
        Result.WARNING,
        f"none answers at {target.bootstrap}",
        "Start it, then run this again, to see the addresses that clients get.",
    )


def _print(printer: Printer, finding: Finding) -> None:
    check, result, detail, remedy = finding
    if printer.as_json:
        printer.row(
            {"type": "check", "check": check, "result": result.value, "detail": detail, "remedy": remedy}
        )
        return
    printer.text(f"{_MARKS[result]}  {check}: {detail}.")
    if remedy is not None:
        printer.text(f"         {remedy}")
