"""Faults that a broker for tests causes: it refuses, delays, cuts, or answers with an error."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Self, TypedDict, Unpack, cast

from barnabas.testing.control import Control, ControlError

_MS_PER_SECOND = 1000


class Fault:
    """One planned fault. It ends when it has met `times` requests, when it is removed, or at the end of a
    `with` block.
    """

    def __init__(self, control: Control, fault_id: int) -> None:
        self._control = control
        self._id = fault_id
        self._hits_at_end: int | None = None

    @property
    def hits(self) -> int:
        """The number of requests that have met it."""
        if self._hits_at_end is not None:
            return self._hits_at_end
        faults = cast("list[dict[str, int]]", self._control.ask("GET", "faults")["faults"])
        return next((fault["hits"] for fault in faults if fault["id"] == self._id), 0)

    def remove(self) -> None:
        """End the fault. Nothing happens if `Faults.clear` or a restart has ended it; it has no hits then."""
        if self._hits_at_end is not None:
            return
        try:
            removed = self._control.ask("DELETE", f"faults/{self._id}")
        except ControlError as error:
            if not error.is_missing:
                raise
            self._hits_at_end = 0
        else:
            self._hits_at_end = cast("int", removed["hits"])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.remove()


class MetRequests(TypedDict, total=False):
    """The requests that a fault meets: of a group, or of a topic, and their number. None is no limit."""

    group: str | None
    topic: str | None
    times: int | None


class Faults:
    """Plans faults. Each meets the requests of an API (Kafka's name, such as "ShareFetch"), or of all APIs;
    `MetRequests` has the options.

    Every method raises ControlError for an unknown name. The oldest fault that fits a request counts.
    """

    def __init__(self, control: Control) -> None:
        self._control = control

    def refuse(self, api: str | None = None, **options: Unpack[MetRequests]) -> Fault:
        """The request is not carried out, and its connection is closed."""
        return self._add({**options, "kind": "refuse", "api": api})

    def cut(self, api: str | None = None, **options: Unpack[MetRequests]) -> Fault:
        """The request is carried out, but its connection is closed instead of an answer."""
        return self._add({**options, "kind": "cut", "api": api})

    def delay(self, seconds: float, api: str | None = None, **options: Unpack[MetRequests]) -> Fault:
        """The request is carried out after this time of the broker's clock, so `Clock.advance` ends it."""
        delay_ms = round(seconds * _MS_PER_SECOND)
        return self._add({**options, "kind": "delay", "api": api, "delay_ms": delay_ms})

    def error(self, error: str, api: str | None = None, **options: Unpack[MetRequests]) -> Fault:
        """The request is not carried out, and answered with Kafka's error of this name, such as
        "NOT_LEADER_OR_FOLLOWER".
        """
        return self._add({**options, "kind": "error", "api": api, "error": error})

    def clear(self) -> None:
        """End all faults."""
        self._control.ask("DELETE", "faults")

    def _add(self, plan: Mapping[str, object]) -> Fault:
        added = self._control.ask("POST", "faults", plan)
        return Fault(self._control, cast("int", added["id"]))
