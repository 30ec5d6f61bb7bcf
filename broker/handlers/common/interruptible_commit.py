"""The reply of a TxnOffsetCommit that may wait in a group that commits in order.

Answers go out in the order of their requests, so a waiting commit needs a connection of its own: a request
behind it ends the wait. The end of the connection withdraws the commit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING, TypeVar

from barnabas.coordinator.offsets.requests import TransactionalCommit
from barnabas.protocol.errors import ErrorCode, Withdrawn
from barnabas.runtime.completion import Completion

if TYPE_CHECKING:
    from barnabas.coordinator.offsets.coordinator import OffsetCoordinator

_Response = TypeVar("_Response")


class InterruptibleCommit(Completion[_Response]):
    """The answer of one commit."""

    __slots__ = ("_commit", "_is_hurried", "_offsets", "_task")

    def __init__(self, offsets: OffsetCoordinator) -> None:
        super().__init__()
        self._is_hurried = False
        self._offsets = offsets
        self._commit: TransactionalCommit | None = None
        self._task: asyncio.Future[_Response] | None = None

    def begin(self, handling: Awaitable[_Response]) -> None:
        """Handle the request. The handling calls `enter` for its commit."""
        self._task = asyncio.ensure_future(handling)
        self._task.add_done_callback(self._end)

    def enter(self, commit: TransactionalCommit) -> Completion[list[ErrorCode]]:
        """See `OffsetCoordinator.commit_in_transaction`."""
        self._commit = commit
        outcome = self._offsets.commit_in_transaction(commit)
        if self._is_hurried:
            self._offsets.end_wait(commit)
        return outcome

    def hurry(self) -> None:
        """See `Waiting`."""
        self._is_hurried = True
        if self._commit is not None:
            self._offsets.end_wait(self._commit)

    def withdraw(self) -> None:
        """See `Waiting`."""
        if self._commit is not None:
            self._offsets.withdraw(self._commit)
        if self._task is not None:
            self._task.cancel()
        if not self.done:
            self.fail(Withdrawn())

    def _end(self, task: asyncio.Future[_Response]) -> None:
        if self.done:
            return
        try:
            response = task.result()
        except Exception as error:
            self.fail(error)
        else:
            self.complete(response)
