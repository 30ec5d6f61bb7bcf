"""All brokers that a share consumer reads from, and the end of their sessions."""

from __future__ import annotations

import asyncio
from typing import Generic

from barnabas.client.group.leader_tasks import LeaderTasks
from barnabas.client.record_content import KeyT, ValueT
from barnabas.client.share.leader import ShareLeader


class ShareLeaders(LeaderTasks[ShareLeader[KeyT, ValueT]], Generic[KeyT, ValueT]):
    """A broker that leads no partition any more stays, for the records held from it."""

    async def flush(self) -> None:
        """Return once all leaders have answered the acknowledgements made so far."""
        await asyncio.gather(*(leader.flush() for leader in self))

    async def finish(self) -> None:
        """Let every leader end its session, and wait for them."""
        for leader in self:
            leader.finish()
        if tasks := self.tasks:
            await asyncio.wait(tasks)
