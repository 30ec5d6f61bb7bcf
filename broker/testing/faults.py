"""Faults that a test has planned: the requests that match them, their number, and their effect.

A fault concerns the requests of an API, a group or a topic, or all requests. If several faults fit a request,
the oldest one counts, and the others wait for the next request. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode

FAULTS_MAX: Final = 1_000
"""Planned faults at a time; one more is refused."""


class TooManyFaults(Exception):  # noqa: N818  named after its event
    """There are `FAULTS_MAX` faults already."""


class FaultKind(StrEnum):
    """The effect of a fault on a request."""

    REFUSE = "refuse"
    """It is not carried out, and its connection is closed."""
    CUT = "cut"
    """It is carried out, but its connection is closed instead of the answer."""
    DELAY = "delay"
    """It is carried out after a time of the broker's clock."""
    ERROR = "error"
    """It is not carried out, and answered with an error code."""


@dataclass(frozen=True, kw_only=True)
class FaultPlan:
    """One fault. None for an API, a group or a topic stands for all of them; `times` None for no limit."""

    kind: FaultKind
    api: ApiKey | None = None
    group: str | None = None
    topic: str | None = None
    times: int | None = None
    delay_ms: int = 0
    error: ErrorCode = ErrorCode.none


class Fault:
    """A plan under a number, with the count of requests that have met it."""

    __slots__ = ("fault_id", "hits", "plan")

    def __init__(self, fault_id: int, plan: FaultPlan) -> None:
        self.fault_id = fault_id
        self.plan = plan
        self.hits = 0

    @property
    def is_used_up(self) -> bool:
        return self.plan.times is not None and self.hits >= self.plan.times


class Faults:
    """The faults of one broker. A fault that is used up stays in the list until it is removed."""

    def __init__(self) -> None:
        self._faults: dict[int, Fault] = {}
        self._last_id = 0

    def __iter__(self) -> Iterator[Fault]:
        return iter(self._faults.values())

    def add(self, plan: FaultPlan) -> Fault:
        """Plan a fault. Raises TooManyFaults."""
        if len(self._faults) >= FAULTS_MAX:
            raise TooManyFaults
        self._last_id += 1
        fault = self._faults[self._last_id] = Fault(self._last_id, plan)
        return fault

    def remove(self, fault_id: int) -> Fault | None:
        """End a fault, and return it; None if there is none of this number."""
        return self._faults.pop(fault_id, None)

    def clear(self) -> None:
        """End all faults."""
        self._faults.clear()

    def may_match(self, api: ApiKey) -> bool:
        """Whether a request of this API may match a fault, if it names a group or topic of one."""
        return any(not fault.is_used_up and fault.plan.api in (None, api) for fault in self._faults.values())

    def match(self, api: ApiKey, groups: Collection[str], topics: Collection[str]) -> FaultPlan | None:
        """The fault that a request matches, which counts as a hit; None for a request that goes on."""
        for fault in self._faults.values():
            plan = fault.plan
            if (
                not fault.is_used_up
                and plan.api in (None, api)
                and (plan.group is None or plan.group in groups)
                and (plan.topic is None or plan.topic in topics)
            ):
                fault.hits += 1
                return plan
        return None
