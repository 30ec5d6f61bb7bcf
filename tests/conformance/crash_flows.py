"""Runs a flow of requests once, and checks its promises in brokers that begin from each state of the disk
that a crash may leave.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, cast

from tests.conformance.harness import Lab, settle
from tests.storage.stepped_filesystem import Crash, SteppedFileSystem

TOPIC = "t"
PARTITIONS = 3

Told = Mapping[str, Any]
"""The answers that clients got, and their requests without an answer."""


class Flow(ABC):
    """Actions of clients, and the conditions that hold at any moment."""

    def __init__(self) -> None:
        self.told: dict[str, Any] = {}
        self.settings: dict[str, str] = {}
        """Settings of the broker."""

    async def prepare(self, lab: Lab) -> None:
        """The requests before the crash points."""
        self.told["topic_id"] = await lab.create_topic(TOPIC, PARTITIONS)

    @abstractmethod
    async def run(self, lab: Lab) -> None: ...

    @abstractmethod
    async def check(self, lab: Lab, told: Told) -> None: ...


async def crashes_of(flow: Flow, flush: str) -> list[Crash]:
    """All states that a crash may leave, each with the answers that clients had by then."""
    lab = Lab({"log.flush": flush, "group.consumer.assignment.interval.ms": "0", **flow.settings})
    filesystem = lab.filesystem = SteppedFileSystem()
    await lab.start()
    await flow.prepare(lab)
    await settle()
    filesystem.crashes.clear()
    filesystem.note = lambda: dict(flow.told)
    await flow.run(lab)
    crashes = list(filesystem.crashes)
    await lab.broker.close()
    return list(_distinct(crashes, only_killed=flush != "always"))


def _distinct(crashes: list[Crash], *, only_killed: bool) -> Iterator[Crash]:
    previous: list[Crash] = []
    for crash in crashes:
        if only_killed and not crash.step.endswith("killed"):
            continue
        if not any((crash.note, crash.files) == (one.note, one.files) for one in previous[-3:]):
            yield crash
        previous.append(crash)


async def check_everywhere(flow: Flow, flush: str) -> None:
    """The flow's promises hold wherever the broker ends."""
    crashes = await crashes_of(flow, flush)
    assert crashes
    for crash in crashes:
        lab = Lab({"log.flush": flush, "group.consumer.assignment.interval.ms": "0", **flow.settings})
        lab.filesystem = crash.filesystem()
        await lab.start()
        told = cast("Told", crash.note)
        try:
            await flow.check(lab, told)
        except AssertionError as error:
            raise AssertionError(f"{crash.step}, {told}") from error
        await lab.broker.close()
