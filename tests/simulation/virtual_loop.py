"""An event loop in which waiting takes no time, and processes that can be killed between two callbacks.

The selector never selects: when nothing is ready, it moves the clock to the next timer. Hours pass in
milliseconds, and the order of events follows from the program alone. If nothing can ever happen again, the
loop raises an error instead of hanging. A broker's real server runs here, with ports of the simulated
network.

A `Process` is a context: everything started in it, directly or indirectly, belongs to it. Killing it drops
its callbacks, like the end of a real process: nothing is unwound, and no peer gets a message.
"""

from __future__ import annotations

import asyncio
import functools
import selectors
from collections.abc import Callable, Coroutine, Generator, Mapping
from contextvars import Context, ContextVar, copy_context
from typing import Any, ParamSpec, TypeVar, cast

_T = TypeVar("_T")
_Arguments = ParamSpec("_Arguments")

_NS_PER_SECOND = 1_000_000_000
_NS_PER_MS = 1_000_000
_START_NS = 1_000 * _NS_PER_SECOND
"""Not 0, to find code that uses a time as a truth value."""

_PASSES_AT_ONE_TIME_MAX = 100_000
"""The maximum number of passes without progress of time; more of them are a livelock."""

_TASKS_PRUNED_AT = 256

_CLOSES_MAX = 1_000
"""The maximum number of blocks that wait at the end of a killed coroutine."""

_STILL_OPEN = "coroutine ignored GeneratorExit"
"""Python's complaint if a block at the end of a coroutine waits."""


class Deadlock(BaseException):
    """Nothing is ready and no timer is set: the program would wait for ever."""


class Livelock(BaseException):
    """The loop is never idle: a callback schedules itself again and again."""


class Killed(BaseException):
    """Raised inside a process that ends in the middle of a call, up to the loop's call."""


class _Selector(selectors.BaseSelector):
    """Has registered files that never become ready, and waits by moving the loop's clock."""

    def __init__(self) -> None:
        self.now_ns = _START_NS
        self._keys: dict[Any, selectors.SelectorKey] = {}
        self._idle_passes = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise Deadlock
        if timeout > 0:
            self.now_ns += max(round(timeout * _NS_PER_SECOND), 1)
            self._idle_passes = 0
        self._idle_passes += 1
        if self._idle_passes > _PASSES_AT_ONE_TIME_MAX:
            raise Livelock
        return []

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        key = self._keys[fileobj] = selectors.SelectorKey(fileobj, -1, events, data)
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys.pop(fileobj)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._keys


class Process:
    """Everything started by one run of one program."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.alive = True
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._tasks: list[asyncio.Task[Any]] = []
        self._context = copy_context()
        self._context.run(_PROCESS.set, self)

    async def run(self, main: Coroutine[Any, Any, _T]) -> _T:
        """Runs `main` as part of this process and returns its result; raises `Killed` if the process ends
        before.
        """
        task = self._context.run(asyncio.get_running_loop().create_task, main)
        waited: list[asyncio.Future[Any]] = [task, self.ended]
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        if not self.alive:
            raise Killed
        return task.result()

    def kill(self) -> None:
        """Ends it immediately. May be called from within the process; that call should then raise
        `Killed`.
        """
        self.alive = False
        if not self.ended.done():
            self.ended.set_result(None)
        for task in self._tasks:
            if not task.done():
                self._context.copy().run(_bury, task)
        self._tasks.clear()

    def call(self, callback: Callable[..., object], *args: object) -> None:
        """Calls back, unless the process is gone."""
        if self.alive:
            callback(*args)

    def adopt(self, task: asyncio.Task[Any]) -> None:
        """Records that the task belongs to this process."""
        if len(self._tasks) >= _TASKS_PRUNED_AT:
            self._tasks = [one for one in self._tasks if not one.done()]
        self._tasks.append(task)


_PROCESS: ContextVar[Process | None] = ContextVar("process", default=None)


def current_process() -> Process | None:
    """The process of the caller; None outside of all."""
    return _PROCESS.get()


def _bury(task: asyncio.Task[Any]) -> None:
    """Closes the task's coroutine now and in order, instead of when its memory is reclaimed.

    Its `finally` blocks have no effect outside: the disk and the network are closed to the process. A block
    that waits is closed in turn.
    """
    task._log_destroy_pending = False  # type: ignore[attr-defined]  # otherwise asyncio complains about a pending task
    coroutine = cast("Coroutine[Any, Any, Any]", task.get_coro())
    for _ in range(_CLOSES_MAX):
        try:
            coroutine.close()
        except BaseException as error:
            if str(error) == _STILL_OPEN:
                continue
        return
    raise AssertionError(f"{coroutine} cannot be closed")


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop with virtual time."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)
        self.set_task_factory(_make_task)

    def time(self) -> float:
        return self._virtual.now_ns / _NS_PER_SECOND

    @property
    def now_ms(self) -> int:
        """The loop's time in whole milliseconds."""
        return self._virtual.now_ns // _NS_PER_MS

    @property
    def now_ns(self) -> int:
        return self._virtual.now_ns

    def call_soon(  # type: ignore[override]  # the arguments' types are the callers' affair
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        process = _process_of(context)
        if process is None:
            return super().call_soon(callback, *args, context=context)
        return super().call_soon(process.call, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        process = _process_of(context)
        if process is None:
            return super().call_at(when, callback, *args, context=context)
        return super().call_at(when, process.call, callback, *args, context=context)

    def bury_tasks(self) -> None:
        """Ends everything left in the loop, without another pass of it."""
        for task in asyncio.all_tasks(self):
            _bury(task)


def run_to_end(loop: VirtualLoop, main: Coroutine[Any, Any, None]) -> None:
    """Runs in a new loop, which is closed afterwards; tasks that still run are buried."""
    try:
        loop.run_until_complete(main)
    finally:
        loop.bury_tasks()
        loop.close()


def in_virtual_time(test: Callable[_Arguments, Coroutine[Any, Any, None]]) -> Callable[_Arguments, None]:
    """Runs a test in a loop of its own, in which waiting takes no time."""

    @functools.wraps(test)
    def run(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> None:
        run_to_end(VirtualLoop(), test(*args, **kwargs))

    return run


def run_in(context: Context, callback: Callable[..., object], *args: object) -> None:
    """Calls back immediately in the context, unless its process is gone."""
    process = context.get(_PROCESS)
    if process is None or process.alive:
        context.copy().run(callback, *args)


def _process_of(context: Context | None) -> Process | None:
    return _PROCESS.get() if context is None else context.get(_PROCESS)


def _make_task(
    loop: asyncio.AbstractEventLoop,
    coroutine: Coroutine[Any, Any, _T] | Generator[Any, None, _T],
    context: Context | None = None,
) -> asyncio.Task[_T]:
    task: asyncio.Task[_T] = asyncio.Task(coroutine, loop=loop, context=context)
    process = _process_of(context)
    if process is not None:
        process.adopt(task)
    return task
