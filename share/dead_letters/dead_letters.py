"""All dead letters of one broker: a task for each share-partition with letters to write."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from barnabas.protocol.delivery_state import Cause, LetterPlace, StateRange
from barnabas.protocol.identity import SharePartitionKey
from barnabas.runtime.logging import get_logger
from barnabas.runtime.tasks import Tasks
from barnabas.share.dead_letters.letter_parts import LetterParts
from barnabas.share.dead_letters.letter_topics import LetterRefused
from barnabas.share.leader.share_partition_leader import SharePartitionLeader

if TYPE_CHECKING:
    from barnabas.share.dead_letters.letter_work import LetterWork

log = get_logger("share")


class _Running(NamedTuple):
    work: LetterWork
    task: asyncio.Task[None]


async def _run_after(before: _Running | None, work: LetterWork) -> None:
    """Run `work` behind that of an earlier leader, whose last letter may be on its way to the log."""
    if before is not None and not before.task.done():
        before.work.try_again()
        await asyncio.wait([before.task])
    await work.run()


class DeadLetters:
    """Implements the leader's `DeadLetterWriter`. Used on the loop's thread only."""

    def __init__(self, parts: LetterParts) -> None:
        self.counts = parts.counts
        self._parts = parts
        self._works: dict[SharePartitionKey, _Running] = {}
        """The newest work of each share-partition."""
        self._tasks = Tasks()
        """Those of all works, also of leaders that were replaced."""

    def place(self, key: SharePartitionKey) -> LetterPlace:
        """See `DeadLetterWriter`."""
        try:
            topic = self._parts.topics.find(key.group_id)
        except LetterRefused:
            return LetterPlace()
        if topic is None:
            return LetterPlace()
        index = key.partition % len(topic.partitions)
        letter_log = self._parts.logs.get(topic, index)
        if letter_log is None:
            return LetterPlace()
        return LetterPlace(Cause.NONE, topic.topic_id, index, letter_log.log_end_offset)

    def write(
        self, leader: SharePartitionLeader, letters: Sequence[StateRange], *, may_be_written: bool
    ) -> None:
        """See `DeadLetterWriter`."""
        running = self._works.get(leader.key)
        if running is not None and running.work.leader is leader and not running.task.done():
            running.work.add(letters, may_be_written=may_be_written)
            return
        from barnabas.share.dead_letters.letter_work import LetterWork  # few brokers write letters

        work = LetterWork(leader, self._parts)
        work.add(letters, may_be_written=may_be_written)
        task = self._tasks.start(_run_after(running, work))
        self._works[leader.key] = _Running(work, task)
        task.add_done_callback(partial(self._ended, leader))

    def is_writing(self, leader: SharePartitionLeader) -> bool:
        """See `DeadLetterWriter`."""
        running = self._works.get(leader.key)
        return running is not None and running.work.leader is leader

    def held_count(self, leader: SharePartitionLeader) -> int:
        """The leader's records that wait because their letters cannot be written at present."""
        running = self._works.get(leader.key)
        return 0 if running is None else running.work.held_count

    def is_stalled(self, leader: SharePartitionLeader) -> bool:
        """Whether these records fill the leader's in-flight window, so that no member gets further ones."""
        running = self._works.get(leader.key)
        return running is not None and running.work.is_stalled

    def settings_changed(self) -> None:
        """A topic, a setting or a feature has changed: letters that wait are tried again at once."""
        for running in list(self._works.values()):
            running.work.try_again()

    async def close(self) -> None:
        """Stop. Letters that are not written are written after the next start."""
        await self._tasks.cancel()

    def _ended(self, leader: SharePartitionLeader, task: asyncio.Task[None]) -> None:
        newest = self._works.get(leader.key)
        if newest is not None and newest.task is task:
            del self._works[leader.key]
        if not task.cancelled() and task.exception() is not None:
            log.error("the writing of dead letters failed", exc_info=task.exception(), group=leader.group_id)
