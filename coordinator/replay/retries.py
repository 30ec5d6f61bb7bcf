"""What a timer asked for, tried again if it could not be done."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

from barnabas.protocol.errors import ApiError
from barnabas.runtime.completion import Completion
from barnabas.runtime.deadline_table import DeadlineTable

_Key = TypeVar("_Key", bound=Hashable)


def retry_if_refused(
    reply: Completion[None],
    deadlines: DeadlineTable[_Key],
    key: _Key,
    retry_at_ms: int,
    on_deadline: Callable[[], None],
) -> None:
    """Set the key's deadline anew if what it stood for is refused, and call `on_deadline`: without it nothing
    would ever be done.

    One that has been set meanwhile stays.
    """

    def on_done(_: Completion[None]) -> None:
        try:
            reply.result()
        except ApiError:
            if key not in deadlines:
                deadlines.restart(key, retry_at_ms)
                on_deadline()

    reply.when_done(on_done)
