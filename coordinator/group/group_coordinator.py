"""The parts that the coordinators of all types of groups have in common.

Every method of a coordinator runs on the loop's thread. It answers at once or, where a record must be
appended first, through a `Completion`. Times passed in are monotonic. A coordinator starts no timer: ask
`next_deadline_ms()` and call `expire(now_ms)`. A partition must be loaded before its groups are used;
`Groups` does that.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import ClassVar, Generic, TypeVar

from barnabas.coordinator.group.description import ListedGroup
from barnabas.coordinator.group.group_operations import GroupOperations
from barnabas.coordinator.group.records import AnyGroupRecord
from barnabas.coordinator.group.registry import GroupRegistry, GroupT
from barnabas.coordinator.group.steps import Steps
from barnabas.coordinator.group.timers import GroupTimers, Timer, TimerKind
from barnabas.coordinator.replay.steps import Operation
from barnabas.protocol.errors import ApiError
from barnabas.runtime.completion import Completion
from barnabas.runtime.logging import get_logger

log = get_logger("coordinator")

TIMER_RETRY_MS = 500
"""Pause before the action of a timer that could not be written is tried again, as in Kafka."""

_T = TypeVar("_T")


class OperationRunner:
    """Runs operations on groups; each operation may move a deadline."""

    def __init__(self, operations: GroupOperations, on_deadline: Callable[[], None]) -> None:
        """`on_deadline` is called when `next_deadline_ms` may have moved."""
        self._operations = operations
        self._on_deadline = on_deadline

    def _run(self, group_id: str, operation: Operation[AnyGroupRecord, _T]) -> Completion[_T]:
        """Run an operation on the partition of a group."""
        reply = self._operations.of_key(group_id).submit(operation)
        reply.when_done(self._after_operation)
        return reply

    def _after_operation(self, _: Completion[_T]) -> None:
        self._on_deadline()


class GroupCoordinator(OperationRunner, ABC, Generic[GroupT]):
    """The groups of one type in the log, in lists, and in time. Subclasses add the requests."""

    GROUP_TYPE: ClassVar[str]
    """Kafka's name of the type."""

    def __init__(
        self,
        operations: GroupOperations,
        registry: GroupRegistry[GroupT],
        timers: GroupTimers,
        on_deadline: Callable[[], None],
    ) -> None:
        super().__init__(operations, on_deadline)
        self._groups = registry
        self._timers = timers

    def begin(self, partition: int, now_ms: int) -> None:
        """A partition's records were all replayed: the sessions of its members begin now."""
        for group in self._groups.of_partition(partition, self._operations.partition_count):
            self._begin_sessions(group, now_ms)

    def forget(self, partition: int) -> None:
        """Forget a partition's groups and their timers; its records may be replayed again."""
        for group in self._groups.of_partition(partition, self._operations.partition_count):
            self._groups.drop(group)
            self._end_waits(group)

    def list_groups(self) -> list[ListedGroup]:
        """All groups of this type, for ListGroups."""
        return [self._listed(group) for group in self._groups]

    def type_of(self, group_id: str) -> str | None:
        """The name of this type if it has a group of that id."""
        return None if self._groups.get(group_id) is None else self.GROUP_TYPE

    def next_deadline_ms(self) -> int | None:
        """When (monotonic) to call `expire`; None without a deadline."""
        return self._timers.next_deadline_ms()

    def expire(self, now_ms: int) -> None:
        """Begin the actions of the timers that have run out."""
        for timer in self._timers.expire(now_ms):
            self._run_timer(timer, now_ms)

    def prolong_session(self, group_id: str, member_id: str, delay_ms: int) -> None:
        """Expect the member's next heartbeat later, if it is a member of a group of this type."""
        self._timers.put_off(Timer(TimerKind.SESSION, group_id, member_id), delay_ms)

    def _run_timer(self, timer: Timer, now_ms: int) -> None:
        reply = self._run(timer.group_id, partial(self._acting, timer, now_ms))
        reply.when_done(partial(self._retry_if_refused, timer, now_ms))

    def _acting(self, timer: Timer, now_ms: int) -> Steps[None]:
        group = self._groups.get(timer.group_id)
        # A timer that was restarted while this operation waited for its turn has not run out.
        if group is not None and timer not in self._timers:
            yield from self._timed_out(group, timer, now_ms)

    def _retry_if_refused(self, timer: Timer, now_ms: int, reply: Completion[None]) -> None:
        if reply.error is not None and not isinstance(reply.error, ApiError):
            log.error(
                "a timer of a group met a defect of the broker", group=timer.group_id, exc_info=reply.error
            )
        elif reply.error is not None and timer not in self._timers:
            self._timers.restart(timer, now_ms + TIMER_RETRY_MS)
            self._on_deadline()

    @abstractmethod
    def _begin_sessions(self, group: GroupT, now_ms: int) -> None:
        """Begin the sessions of a loaded group's members."""

    @abstractmethod
    def _end_waits(self, group: GroupT) -> None:
        """End the timers of a group that was forgotten, and the waits of its members."""

    @abstractmethod
    def _listed(self, group: GroupT) -> ListedGroup: ...

    @abstractmethod
    def _timed_out(self, group: GroupT, timer: Timer, now_ms: int) -> Steps[None]:
        """The steps to take when a timer of the group has run out."""
