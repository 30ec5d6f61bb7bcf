"""Where requests wait: for records to fetch, for bytes enough, for a lock to end.

A request that cannot be answered yet becomes a `DelayedOperation`, watched under the keys (usually
partitions) whose changes may complete it. Whoever changes such a thing calls `wake(key)`; when the wait is
over by time, or somebody is in a hurry, the operation answers with what there is. There is no polling, no
task and no timer per operation: an operation is the future that its connection awaits, its deadline is one
entry in the broker's `Deadlines`.

Keys are woken at the end of the loop's pass: ten appends in one pass are one look, which finds all ten, and a
completing operation may wake others without recursion.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Hashable, Iterable
from functools import partial
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from barnabas.runtime.completion import Completion
from barnabas.runtime.deadlines import Deadlines
from barnabas.runtime.logging import get_logger

log = get_logger("purgatory")

T = TypeVar("T")

_Operations = dict["DelayedOperation[Any]", None]
"""Operations in the order in which they came."""


class Withdrawn(Exception):  # noqa: N818  # an outcome, and no mistake
    """The client of a delayed operation is gone, so the operation has no answer."""


@runtime_checkable
class Waiting(Protocol):
    """A reply that waits on behalf of a client; a `DelayedOperation` is one."""

    def hurry(self) -> None:
        """Another request of the client waits behind this one: answer without further waiting."""
        ...

    def withdraw(self) -> None:
        """The client is gone: end without an answer, and acquire nothing."""
        ...


class DelayedOperation(Completion[T], Generic[T]):
    """A request that waits, and the completion of its answer.

    A subclass overrides `try_complete` and `on_expire`; both end in `complete` (or `fail`), at once or, where
    an append has to finish first, later. Try before watching: an operation that completes at once need never
    be watched.
    """

    purgatory: Purgatory | None = None
    """Where this waits; None before and after."""

    deadline_ms: int = 0
    """Monotonic milliseconds at which the wait ends."""

    hurried: bool = False
    """Another request has asked for an answer without further waiting."""

    _preparation: asyncio.Future[None] | None = None
    """Kept, since the loop itself doesn't keep its tasks alive."""

    def begin_when(self, ready: Awaitable[None], begin: Callable[[], None]) -> None:
        """Call `begin`, which tries this operation and has it watched, after `ready`; not at all if this
        operation is done by then.
        """
        self._preparation = asyncio.ensure_future(ready)
        self._preparation.add_done_callback(partial(self._begin, begin))

    def _begin(self, begin: Callable[[], None], ready: asyncio.Future[None]) -> None:
        if self.done:
            if not ready.cancelled():
                ready.exception()  # nobody is left to be told
            return
        try:
            ready.result()
            begin()
        except Exception as error:
            # A callback has no caller to tell, and the client must not wait for ever.
            _fail(self, error)

    def try_complete(self) -> bool:
        """Answer if the awaited change has come; True ends the wait, False leaves the operation waiting."""
        raise NotImplementedError

    def on_expire(self) -> None:
        """Answer with the present state: the wait has ended by its deadline or by `hurry`. Called at most
        once."""
        raise NotImplementedError

    def hurry(self) -> None:
        """End the wait now, as if its deadline had passed: another request of this client waits behind it.

        An operation that isn't watched yet will not wait once it is.
        """
        self.hurried = True
        if self.purgatory is not None:
            self.purgatory.expire(self)

    def withdraw(self) -> None:
        """End the wait without an answer, and acquire nothing: the client is gone."""
        if self.purgatory is not None:
            self.purgatory.forget(self)
        if not self.done:
            self.fail(Withdrawn())

    def __await__(self) -> Generator[Any, None, T]:
        """The answer; a waiter that is cancelled withdraws the operation."""
        try:
            return (yield from super().__await__())
        except asyncio.CancelledError:
            self.withdraw()
            raise

    def next_deadline_ms(self) -> int | None:
        """See `Expirable`."""
        return self.deadline_ms if self.purgatory is not None else None

    def expire(self, now_ms: int) -> None:
        """See `Expirable`."""
        self.hurry()


class Purgatory:
    """The operations of one broker that wait, by the keys that may complete them."""

    def __init__(self, deadlines: Deadlines) -> None:
        self._deadlines = deadlines
        self._operations_by_key: dict[Hashable, _Operations] = {}
        self._watched: dict[DelayedOperation[Any], list[tuple[Hashable, _Operations]]] = {}
        """Under which keys an operation waits, each with all that do: keys are many, and dear to look up."""
        self._woken: dict[int, _Operations] = {}
        """The operations under each woken key, by the identity of their dict, which is held here and so is
        nobody else's: a key is dear to hash.
        """

    def __len__(self) -> int:
        """How many operations wait."""
        return len(self._watched)

    def count_of(self, kind: type[DelayedOperation[Any]]) -> int:
        """How many operations of a class wait."""
        return sum(1 for one in self._watched if isinstance(one, kind))

    def watch_count_of(self, kind: type[DelayedOperation[Any]]) -> int:
        """How many keys they are watched under, all together."""
        return sum(len(watched) for one, watched in self._watched.items() if isinstance(one, kind))

    @property
    def key_count(self) -> int:
        """How many keys are watched."""
        return len(self._operations_by_key)

    def watch(self, operation: DelayedOperation[Any], keys: Iterable[Hashable], deadline_ms: int) -> None:
        """Keep `operation` until a wake completes it or `deadline_ms` (monotonic) passes.

        Operations under one key are tried in the order in which they came. An operation is watched once in
        its life; one that was hurried or withdrawn before that doesn't wait at all.
        """
        assert operation.purgatory is None
        if operation.done:
            return
        operation.purgatory = self
        operation.deadline_ms = deadline_ms
        watched = self._watched[operation] = []
        for key in keys:
            operations = self._operations_by_key.setdefault(key, {})
            if operation not in operations:
                operations[operation] = None
                watched.append((key, operations))
        if operation.hurried:
            self.expire(operation)
        else:
            self._deadlines.schedule(operation, deadline_ms)

    def wake(self, key: Hashable) -> None:
        """Something about `key` has changed: try its operations before the loop's next pass ends."""
        operations = self._operations_by_key.get(key)
        if operations is None:
            return
        if not self._woken:
            asyncio.get_running_loop().call_soon(self._try_woken)
        self._woken[id(operations)] = operations

    def expire(self, operation: DelayedOperation[Any]) -> None:
        """End the wait of `operation` with what there is; nothing happens if it doesn't wait here."""
        if self._remove(operation):
            try:
                operation.on_expire()
            except Exception as error:
                _fail(operation, error)

    def forget(self, operation: DelayedOperation[Any]) -> None:
        """Drop `operation` without an answer; nothing happens if it doesn't wait here."""
        self._remove(operation)

    def _try_woken(self) -> None:
        woken, self._woken = self._woken, {}
        tried: set[DelayedOperation[Any]] = set()
        for operations in woken.values():
            for operation in list(operations):
                if operation not in tried and operation in self._watched:
                    tried.add(operation)
                    self._try(operation)

    def _try(self, operation: DelayedOperation[Any]) -> None:
        try:
            if operation.try_complete() or operation.done:
                self._remove(operation)
        except Exception as error:
            self._remove(operation)
            _fail(operation, error)

    def _remove(self, operation: DelayedOperation[Any]) -> bool:
        """Forget all about `operation`; False if it isn't known."""
        watched = self._watched.pop(operation, None)
        if watched is None:
            return False
        operation.purgatory = None
        self._deadlines.cancel(operation)
        for key, operations in watched:
            del operations[operation]
            if not operations:
                del self._operations_by_key[key]
        return True


def _fail(operation: DelayedOperation[Any], error: Exception) -> None:
    """Our bug in one operation is its own request's failure; whoever woke it goes on."""
    if operation.done:
        log.error("delayed operation failed after its answer", exc_info=error)
    else:
        operation.fail(error)
