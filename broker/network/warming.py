"""Loads handlers one by one while no requests arrive: the port opens without them, and the first client still
finds most of them ready.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Final

from barnabas.broker.network.dispatch import Dispatcher
from barnabas.protocol.api import ApiKey
from barnabas.runtime.collector import keep_out_of_collections

_STEP_SECONDS: Final = 0.02
"""The pause between loading two handlers, in which requests come first."""


class Warming:
    """The handlers of these APIs that are not loaded yet, in this order."""

    def __init__(self, dispatcher: Dispatcher, apis: Iterable[ApiKey]) -> None:
        self._dispatcher = dispatcher
        self._apis = deque(apis)
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Load the first one after a pause, if there is any."""
        if self._apis:
            self._continue_later()

    def end(self) -> None:
        """Load no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _continue_later(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(_STEP_SECONDS, self._continue, self._dispatcher.started_count)

    def _continue(self, started_count: int) -> None:
        """Load the next handler, unless requests have arrived since the last step."""
        if started_count == self._dispatcher.started_count:
            self._dispatcher.warm(self._apis.popleft())
        if self._apis:
            self._continue_later()
        else:
            keep_out_of_collections()
