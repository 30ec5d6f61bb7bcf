"""The broker for tests on asyncio: each operation of `BlockingBroker` as a coroutine in a thread.

So there is one implementation, and the test's own loop, with its clients, goes on meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from barnabas.testing.blocking_broker import BlockingBroker
from barnabas.testing.clock import Clock
from barnabas.testing.faults import Faults

_Blocking = TypeVar("_Blocking")
_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


class _Face(Generic[_Blocking]):
    """An object with the operations of a blocking one."""

    def __init__(self, blocking: _Blocking) -> None:
        self._blocking = blocking

    def run_in_thread(self, operation: Callable[[_Blocking], _Result]) -> Coroutine[Any, Any, _Result]:
        return asyncio.to_thread(operation, self._blocking)


class _InThread(Generic[_Blocking, _Arguments, _Result]):
    """A method of a face: the blocking method of the same arguments, in a thread."""

    def __init__(self, method: Callable[Concatenate[_Blocking, _Arguments], _Result]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    def __get__(
        self, face: _Face[_Blocking], owner: type[_Face[_Blocking]]
    ) -> Callable[_Arguments, Coroutine[Any, Any, _Result]]:
        def call(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> Coroutine[Any, Any, _Result]:
            return face.run_in_thread(lambda blocking: self._method(blocking, *args, **kwargs))

        return call


class AsyncClock(_Face[Clock]):
    """See `Clock`."""

    advance = _InThread(Clock.advance)
    now = _InThread(Clock.now)


class AsyncFaults(_Face[Faults]):
    """See `Faults`. A `Fault` itself has no coroutines: its calls take a millisecond."""

    refuse = _InThread(Faults.refuse)
    cut = _InThread(Faults.cut)
    delay = _InThread(Faults.delay)
    error = _InThread(Faults.error)
    clear = _InThread(Faults.clear)


class AsyncBroker(_Face[BlockingBroker]):
    """See `BlockingBroker`; `async with Broker() as broker` makes it."""

    start = _InThread(BlockingBroker.start)
    close = _InThread(BlockingBroker.close)
    restart = _InThread(BlockingBroker.restart)
    reset = _InThread(BlockingBroker.reset)
    create_topic = _InThread(BlockingBroker.create_topic)
    configure_group = _InThread(BlockingBroker.configure_group)
    records = _InThread(BlockingBroker.records)
    share_state = _InThread(BlockingBroker.share_state)
    assert_records = _InThread(BlockingBroker.assert_records)
    assert_share_state = _InThread(BlockingBroker.assert_share_state)

    @property
    def bootstrap_servers(self) -> str:
        """The address for clients, as host:port."""
        return self._blocking.bootstrap_servers

    @property
    def clock(self) -> AsyncClock:
        return AsyncClock(self._blocking.clock)

    @property
    def faults(self) -> AsyncFaults:
        return AsyncFaults(self._blocking.faults)

    @property
    def log(self) -> str:
        """The lines that the broker has logged: warnings and errors."""
        return self._blocking.log
