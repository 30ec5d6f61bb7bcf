"""Turns: a request that names very much is worked on in pieces, between which the loop serves others."""

import asyncio

STEPS_PER_TURN = 2_000
"""Small pieces of work, a microsecond or a few each, that a request may have done in one turn."""


class Turns:
    """Those of one request."""

    def __init__(self) -> None:
        self._steps_left = STEPS_PER_TURN

    async def took(self, step_count: int) -> None:
        """So much work was done: others have their turn if it was enough."""
        self._steps_left -= step_count
        if self._steps_left <= 0:
            self._steps_left = STEPS_PER_TURN
            await asyncio.sleep(0)
