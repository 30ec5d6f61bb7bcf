"""The answer of a coordinator operation: there at once, or later."""

import asyncio
import logging
from collections.abc import Callable, Generator
from typing import Any, Generic, TypeVar

_logger = logging.getLogger(__name__)

_T = TypeVar("_T")


class CoordinatorReply(Generic[_T]):
    """A value or an error that arrives once, on the loop's thread.

    Look at `done` first: if it is set take `result()`, which raises the ApiError of a refused operation; else
    await the reply, which raises likewise. What keeps a reply waiting is mostly an append in flight; a
    JoinGroup waits for the other members too, an EndTxn for the markers.
    """

    __slots__ = ("_callbacks", "_error", "_value", "done")

    def __init__(self) -> None:
        self.done = False
        self._value: _T | None = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[CoordinatorReply[_T]], object]] = []

    def result(self) -> _T:
        """The value; raises the operation's error. Only to be called once `done`."""
        assert self.done
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]  # None only where _T includes it

    def add_done_callback(self, callback: Callable[["CoordinatorReply[_T]"], object]) -> None:
        """Call `callback` with the reply when it is there; at once if it is."""
        if self.done:
            callback(self)
        else:
            self._callbacks.append(callback)

    def complete(self, value: _T) -> None:
        """The runtime's side: the operation ended well."""
        self._value = value
        self._finish()

    def fail(self, error: BaseException) -> None:
        """The runtime's side: the operation was refused."""
        self._error = error
        self._finish()

    def _finish(self) -> None:
        assert not self.done
        self.done = True
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            try:
                callback(self)
            except Exception:
                # A bug of ours, and no reason to leave anybody else waiting.
                _logger.exception("A callback of a finished reply failed")

    def __await__(self) -> Generator[Any, None, _T]:
        if not self.done:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            # A cancelled waiter stays cancelled; the operation itself goes on.
            self.add_done_callback(lambda _: None if waiter.done() else waiter.set_result(None))
            yield from waiter.__await__()
        return self.result()
