"""Where groups begin to read, kept with the partitions: the group coordinator's way to the share state.

The coordinator says which partitions of a group have state, and when that begins anew or ends; what is
recorded of it is the partition's own affair. Beginning undecided records nothing: a partition without a
record of this group is undecided. Everything else is a checkpoint of its own, and the ticket ends when that
is in the log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from uuid import UUID

from barnabas.broker.leader.share_partition_leader import undecided_image
from barnabas.broker.leader.share_partitions import SharePartitions
from barnabas.protocol.identity import SharePartitionKey, TopicIdPartition
from barnabas.storage.append import Append
from barnabas.storage.format.share_image import UNDECIDED_OFFSET, ShareStateImage
from barnabas.storage.log import PartitionLog

OpenLog = Callable[[TopicIdPartition], Awaitable[PartitionLog | None]]
"""Opens a partition's log; None if the partition doesn't exist (any more)."""


class StateKeeper:
    """Initialises, resets and deletes the state of one group on one partition (`ShareStateInitialiser`)."""

    def __init__(self, share_partitions: SharePartitions, open_log: OpenLog) -> None:
        self._share_partitions = share_partitions
        self._open_log = open_log
        self._tasks: set[asyncio.Task[None]] = set()

    def initialise(
        self,
        group_id: str,
        group_incarnation: int,
        topic_id: UUID,
        partition: int,
        start_offset: int,
        state_epoch: int,
    ) -> Append:
        """See `ShareStateInitialiser.initialise`. A negative start that is not undecided means offset 0."""
        key = SharePartitionKey(group_id, topic_id, partition)
        if start_offset == UNDECIDED_OFFSET:
            self._share_partitions.forget(key)
            return _done()

        def begin(log: PartitionLog) -> Append | None:
            image = self._recorded(key, group_incarnation, log)
            begun = undecided_image(log, group_incarnation, state_epoch)
            begun.checkpoint_epoch = 0 if image is None else image.checkpoint_epoch
            begun.start_offset = begun.end_offset = max(start_offset, 0)
            return self._share_partitions.store(key.topic_id_partition, log).reset(group_id, begun)

        return self._write(key, begin)

    def delete(self, group_id: str, group_incarnation: int, topic_id: UUID, partition: int) -> Append:
        """See `ShareStateInitialiser.delete`."""
        key = SharePartitionKey(group_id, topic_id, partition)

        def end(log: PartitionLog) -> Append | None:
            image = self._recorded(key, group_incarnation, log)
            if image is None:
                return None
            return self._share_partitions.store(key.topic_id_partition, log).reset(
                group_id, image, deleted=True
            )

        return self._write(key, end)

    async def close(self) -> None:
        """Wait for what is being written."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _recorded(
        self, key: SharePartitionKey, incarnation: int, log: PartitionLog
    ) -> ShareStateImage | None:
        return self._share_partitions.store(key.topic_id_partition, log).load(key.group_id, incarnation)

    def _write(self, key: SharePartitionKey, append: Callable[[PartitionLog], Append | None]) -> Append:
        """A ticket that ends with the append, once the log is open, or when there turns out to be nothing to
        append to. The share-partition has no leader until then.
        """
        ticket = Append()
        self._share_partitions.hold_back(key, ticket)

        async def write() -> None:
            try:
                log = await self._open_log(key.topic_id_partition)
                if log is not None:
                    # What the last leader decided may still be on its way into the log.
                    await self._share_partitions.store(key.topic_id_partition, log).drained()
                written = None if log is None else append(log)
                if written is not None:
                    await written
            except Exception as error:
                ticket.fail(error)
            else:
                ticket.complete()

        task = asyncio.get_running_loop().create_task(write())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return ticket


def _done() -> Append:
    ticket = Append()
    ticket.complete()
    return ticket
