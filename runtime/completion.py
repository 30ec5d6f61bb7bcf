"""The outcome of work that is under way: a value or an error, known now or later.

Most work here is over before its caller looks: an append is usually in the file when the call returns. So a
completion is a plain object. Ask for `done`, register a listener, or await it; a future is made only for a
coroutine that awaits an open completion. Used on the loop's thread only.

An `ExpectedError` is kept and raised without its traceback (`without_frames`). A defect keeps its traceback,
for the log.

Product code writes `reply: Completion[int] = Completion()`, because a call of `Completion[int]` goes through
`typing`, which takes longer than everything else in the life of a completion.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Iterable
from typing import Any, Final, Generic, TypeVar

from barnabas.protocol.errors import without_frames
from barnabas.runtime.logging import get_logger

log = get_logger("completion")

_DEFECT: Final = "a listener of a completion failed"

T = TypeVar("T")
U = TypeVar("U")


class Completion(Generic[T]):
    """A value of type `T`, or an error, that arrives once.

    The owner of the work calls `complete` or `fail`, exactly once. Each listener is called exactly once, in
    the order of registration, on the caller's stack; a completion that is done calls a new listener at once.

    A listener raises nothing: its exception is a defect, which is logged. Neither the owner of the work nor
    the caller of `when_done` gets it. Work that may fail belongs in `then`, `then_run` or `end_with`, which
    make the exception the outcome of the completion that others wait for.
    """

    __slots__ = ("_listeners", "done", "error", "value")

    def __init__(self) -> None:
        self.done = False
        self.error: Exception | None = None
        """The cause of a failure; None while the work is under way, and after a success."""
        self.value: T | None = None
        """Once the work has succeeded, what `result` returns."""
        self._listeners: list[Callable[[Completion[T]], object]] | None = None

    @staticmethod
    def of(value: U) -> Completion[U]:
        """A completion that is done, with `value`."""
        completion: Completion[U] = _new_completion(Completion)
        completion.done = True
        completion.error = None
        completion.value = value
        completion._listeners = None
        return completion

    @staticmethod
    def failed(error: Exception) -> Completion[U]:  # pyright: ignore[reportInvalidTypeVarUse]
        """A completion that is done, with `error`; the caller's context determines its type."""
        completion: Completion[U] = Completion()
        completion.fail(error)
        return completion

    def result(self) -> T:
        """The value; raises the error. Only to be called once `done`."""
        assert self.done
        if self.error is not None:
            raise without_frames(self.error)
        return self.value  # type: ignore[return-value]  # None only where T includes it

    def when_done(self, listener: Callable[[Completion[T]], object]) -> None:
        """Call `listener` with this completion when it is done: immediately if it is."""
        if self.done:
            try:
                listener(self)
            except Exception:
                log.exception(_DEFECT)
        elif self._listeners is None:
            self._listeners = [listener]
        else:
            self._listeners.append(listener)

    def complete(self, value: T) -> None:
        """The work has succeeded."""
        assert not self.done, "a completion ends once"
        self.value = value
        self.done = True
        if self._listeners is not None:
            self._call_listeners()

    def fail(self, error: Exception) -> None:
        """The work has failed."""
        assert not self.done, "a completion ends once"
        self.error = without_frames(error)
        self.done = True
        if self._listeners is not None:
            self._call_listeners()

    def then(self, function: Callable[[T], U]) -> Completion[U]:
        """The completion of `function(value)`, done at once if this one is. It carries an error of either."""
        following: Completion[U] = Completion()
        if self.done:
            self._pass_to(following, function)
        else:
            self.when_done(lambda _: self._pass_to(following, function))
        return following

    def then_run(self, function: Callable[[T], Completion[U]]) -> Completion[U]:
        """The outcome of the work that `function(value)` begins, done at once if all of it is. It carries an
        error of this completion, of the function or of its work.
        """
        if self.done:
            try:
                return function(self.result())
            except Exception as error:
                return Completion.failed(error)
        following: Completion[U] = Completion()
        self.when_done(lambda _: following.end_with(lambda: function(self.result())))
        return following

    def _pass_to(self, following: Completion[U], function: Callable[[T], U]) -> None:
        try:
            value = function(self.result())
        except Exception as error:
            following.fail(error)
        else:
            following.complete(value)

    def end_as(self, other: Completion[T]) -> None:
        """End with the outcome of `other`, which is done."""
        if other.error is not None:
            self.fail(other.error)
        else:
            self.complete(other.result())

    def end_with(self, begin: Callable[[], Completion[T]]) -> None:
        """End with the outcome of the work that `begin` starts now, or with its exception."""
        try:
            work = begin()
        except Exception as error:
            self.fail(error)
        else:
            work.when_done(self.end_as)

    def _call_listeners(self) -> None:
        listeners, self._listeners = self._listeners, None
        for listener in listeners or ():
            try:
                listener(self)
            except Exception:
                # The other listeners must still hear of the outcome.
                log.exception(_DEFECT)

    def __await__(self) -> Generator[Any, None, T]:
        """Returns the value, or raises the error; suspends only while the work is under way."""
        if not self.done:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            # A cancelled waiter stays cancelled; the work itself goes on.
            self.when_done(lambda _: None if waiter.done() else waiter.set_result(None))
            yield from waiter.__await__()
        return self.result()


_new_completion: Callable[[type[Any]], Any] = Completion.__new__


class AllDone(Completion[None]):
    """The end of all of these completions, with values or errors: done at once if they are."""

    __slots__ = ("_open_count",)

    def __init__(self, completions: Iterable[Completion[U]]) -> None:
        super().__init__()
        self._open_count = 1  # this call, so that nothing ends before all are registered
        for completion in completions:
            if not completion.done:
                self._open_count += 1
                completion.when_done(self._one_done)
        self._one_done(self)

    def _one_done(self, _: object) -> None:
        self._open_count -= 1
        if not self._open_count:
            self.complete(None)
