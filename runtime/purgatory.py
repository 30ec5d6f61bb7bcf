"""Requests that wait: for records to fetch, for enough bytes, for a lock to end.

A request that cannot be answered yet becomes a `DelayedOperation`, watched under the keys (usually
partitions) whose changes may complete it. Code that makes such a change calls `wake(key)`. When the wait ends
by its deadline, or is hurried, the operation answers with the present state. There is no polling, no task and
no timer per operation: an operation is the completion that its connection awaits, and its deadline is one
entry in the broker's `Deadlines`.

Keys are woken at the end of the loop's pass: after ten appends in one pass an operation is tried once and
finds all ten. A completing operation may wake others without recursion.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Hashable, Iterable
from functools import partial
from typing import Any, Protocol, TypeGuard, TypeVar

from barnabas.protocol.errors import Withdrawn
from barnabas.runtime.completion import Completion
from barnabas.runtime.deadlines import Deadlines
from barnabas.runtime.logging import get_logger

log = get_logger("purgatory")

T = TypeVar("T")

_Operations = dict["DelayedOperation[Any]", None]
"""Operations in the order in which they came."""


class Waiting(Protocol):
    """A reply that waits for a client, and hears of events on its connection."""

    def hurry(self) -> None:
        """Another request of the client waits behind this one: answer without further waiting."""
        ...

    def withdraw(self) -> None:
        """The client is gone: end without an answer and without acquiring records."""
        ...


def is_waiting(reply: object) -> TypeGuard[Waiting]:
    """Whether a reply is `Waiting`. `isinstance` with a Protocol takes longer than all other work of a
    connection for a request.
    """
    return hasattr(reply, "hurry")


class DelayedOperation(Completion[T]):
    """A request that waits, and the completion of its answer.

    A subclass overrides `try_complete` and `on_expire`. Both end in `complete` or `fail`, at once or, if an
    append must finish first, later. Try an operation before watching it: one that completes at once need not
    be watched.
    """

    purgatory: Purgatory | None = None
    """The purgatory that watches this operation; None before and after."""

    deadline_ms: int = 0
    """The end of the wait, in monotonic milliseconds."""

    hurried: bool = False
    """Whether `hurry` was called."""

    _preparation: asyncio.Future[None] | None = None
    """Kept because the loop does not keep its tasks alive."""

    def begin_when(self, ready: Awaitable[None], begin: Callable[[], None]) -> None:
        """After `ready`, call `begin`, which tries this operation and has it watched.

        `begin` is not called if this operation is done by then.
        """
        self._preparation = asyncio.ensure_future(ready)
        self._preparation.add_done_callback(partial(self._begin, begin))

    def _begin(self, begin: Callable[[], None], ready: asyncio.Future[None]) -> None:
        if self.done:
            if not ready.cancelled():
                ready.exception()  # marks the error as retrieved: no client waits for it
            return
        try:
            ready.result()
            begin()
        except Exception as error:
            # The loop is the caller here. The client must get the error, or it would wait for ever.
            _fail(self, error)

    def try_complete(self) -> bool:
        """Answer if the awaited change has happened. True ends the wait, False continues it."""
        raise NotImplementedError

    def on_expire(self) -> None:
        """Answer with the present state: the wait has ended by its deadline or by `hurry`. Called once at
        most."""
        raise NotImplementedError

    def hurry(self) -> None:
        """End the wait now, as if its deadline had passed: another request of this client waits behind it.

        An operation that is not watched yet ends its wait as soon as it is watched.
        """
        self.hurried = True
        if self.purgatory is not None:
            self.purgatory.expire(self)

    def withdraw(self) -> None:
        """End the wait without an answer and without acquiring records: the client is gone."""
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
    """The waiting operations of one broker, by the keys that may complete them."""

    def __init__(self, deadlines: Deadlines) -> None:
        self._deadlines = deadlines
        self._operations_by_key: dict[Hashable, _Operations] = {}
        self._watched: dict[DelayedOperation[Any], list[tuple[Hashable, _Operations]]] = {}
        """The keys of each operation, with all operations of the key: hashing the many keys is expensive."""
        self._woken: dict[int, _Operations] = {}
        """The operations of each woken key by the identity of their dict: hashing a key is expensive. The
        dict is kept here, so its identity cannot be reused.
        """

    def __len__(self) -> int:
        """The number of waiting operations."""
        return len(self._watched)

    def count_of(self, kind: type[DelayedOperation[T]]) -> int:
        """The number of waiting operations of a class."""
        return sum(1 for operation in self._watched if isinstance(operation, kind))

    def watch_count_of(self, kind: type[DelayedOperation[T]]) -> int:
        """The sum of the keys of all waiting operations of a class."""
        return sum(
            len(watched) for operation, watched in self._watched.items() if isinstance(operation, kind)
        )

    @property
    def key_count(self) -> int:
        """The number of watched keys."""
        return len(self._operations_by_key)

    def watch(self, operation: DelayedOperation[T], keys: Iterable[Hashable], deadline_ms: int) -> None:
        """Keep `operation` until a wake completes it or `deadline_ms` (monotonic) passes.

        Operations of one key are tried in the order of their arrival. An operation is watched once in its
        life; one that was hurried or withdrawn before that does not wait.
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
        """`key` has changed: try its operations before the loop's next pass ends."""
        operations = self._operations_by_key.get(key)
        if operations is None:
            return
        if not self._woken:
            asyncio.get_running_loop().call_soon(self._try_woken)
        self._woken[id(operations)] = operations

    def expire(self, operation: DelayedOperation[T]) -> None:
        """End the wait of `operation` with the present state; nothing happens if it does not wait here."""
        if self._remove(operation):
            try:
                operation.on_expire()
            except Exception as error:
                _fail(operation, error)

    def forget(self, operation: DelayedOperation[T]) -> None:
        """Drop `operation` without an answer; nothing happens if it does not wait here."""
        self._remove(operation)

    def _try_woken(self) -> None:
        woken, self._woken = self._woken, {}
        tried: set[DelayedOperation[Any]] = set()
        for operations in woken.values():
            for operation in list(operations):
                if operation not in tried and operation in self._watched:
                    tried.add(operation)
                    self._try(operation)

    def _try(self, operation: DelayedOperation[T]) -> None:
        try:
            if operation.try_complete() or operation.done:
                self._remove(operation)
        except Exception as error:
            self._remove(operation)
            _fail(operation, error)

    def _remove(self, operation: DelayedOperation[T]) -> bool:
        """Forget `operation`; False if it is not known."""
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


def _fail(operation: DelayedOperation[T], error: Exception) -> None:
    """A bug of ours in one operation fails only its own request; the code that woke it continues."""
    if operation.done:
        log.error("delayed operation failed after its answer", exc_info=error)
    else:
        operation.fail(error)
