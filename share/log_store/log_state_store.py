"""`share.state.store=log`: the state of every share-partition in its partition's own log, log by log.

Resets and deletions open the log if need be. Beginning undecided records nothing: a partition without a
record of this group is undecided. Everything else is a checkpoint of its own, and its completion ends when
that is in the log.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from barnabas.protocol.identity import SharePartitionKey, TopicIdPartition
from barnabas.runtime.completion import Completion
from barnabas.runtime.tasks import Tasks
from barnabas.share.log_store.partition_state_store import PartitionStateStore
from barnabas.storage.errors import ShareStateLost, StorageError
from barnabas.storage.format.share_image import UNDECIDED_OFFSET, ShareStateImage
from barnabas.storage.log.partition_log import PartitionLog

OpenLog = Callable[[TopicIdPartition], Awaitable[PartitionLog | None]]
"""Opens a partition's log; None if the partition doesn't exist (any more)."""


class LogStateStore:
    """A `PartitionStateStore` for each log that has leaders (`ShareStateStore`).

    `deltas_per_checkpoint`: `share.coordinator.snapshot.update.records.per.snapshot`.
    """

    def __init__(self, open_log: OpenLog, wall_ms: Callable[[], int], deltas_per_checkpoint: int) -> None:
        self._open_log = open_log
        self._wall_ms = wall_ms
        self._deltas_per_checkpoint = deltas_per_checkpoint
        self._stores: dict[TopicIdPartition, PartitionStateStore] = {}
        self._tasks = Tasks()

    def decisions_of(self, partition: TopicIdPartition, log: PartitionLog) -> PartitionStateStore:
        """See `ShareStateStore`."""
        store = self._stores.get(partition)
        if store is None:
            store = PartitionStateStore(log, self._wall_ms, self._deltas_per_checkpoint)
            self._stores[partition] = store
        assert store.log is log, f"{partition} was opened anew, and its leaders not forgotten"
        return store

    def load(
        self, key: SharePartitionKey, log: PartitionLog, group_incarnation: int, state_epoch: int
    ) -> Completion[ShareStateImage]:
        """See `ShareStateStore`. There at once; reads at most one checkpoint and the deltas behind it."""
        try:
            image = self._recorded(key, log, group_incarnation)
        except StorageError as error:
            return Completion.failed(error)
        return Completion.of(image or _undecided_image(log, group_incarnation, state_epoch))

    def initialise(
        self, key: SharePartitionKey, group_incarnation: int, start_offset: int, state_epoch: int
    ) -> Completion[None]:
        """See `ShareStateStore`."""
        if start_offset == UNDECIDED_OFFSET:
            return Completion.of(None)

        def begin(log: PartitionLog) -> Completion[None]:
            image = self._last_known(key, log, group_incarnation)
            begun = _undecided_image(log, group_incarnation, state_epoch)
            begun.checkpoint_epoch = 0 if image is None else image.checkpoint_epoch
            begun.start_offset = begun.end_offset = start_offset
            return self.decisions_of(key.topic_id_partition, log).reset(key.group_id, begun)

        return self._write(key, begin)

    def delete(self, key: SharePartitionKey, group_incarnation: int) -> Completion[None]:
        """See `ShareStateStore`."""

        def end(log: PartitionLog) -> Completion[None] | None:
            image = self._last_known(key, log, group_incarnation)
            if image is None:
                return None
            return self.decisions_of(key.topic_id_partition, log).reset(key.group_id, image, deleted=True)

        return self._write(key, end)

    def forget_partition(self, partition: TopicIdPartition) -> None:
        """See `ShareStateStore`."""
        self._stores.pop(partition, None)

    async def drained(self) -> None:
        """See `ShareStateStore`. The logs wait for their own writes."""
        await self._tasks.drained()

    def _recorded(
        self, key: SharePartitionKey, log: PartitionLog, group_incarnation: int
    ) -> ShareStateImage | None:
        return self.decisions_of(key.topic_id_partition, log).load(key.group_id, group_incarnation)

    def _last_known(
        self, key: SharePartitionKey, log: PartitionLog, group_incarnation: int
    ) -> ShareStateImage | None:
        """The recorded state that is about to be replaced; a lost state does not prevent that."""
        try:
            return self._recorded(key, log, group_incarnation)
        except ShareStateLost:
            image = _undecided_image(log, group_incarnation, 0)
            store = self.decisions_of(key.topic_id_partition, log)
            image.checkpoint_epoch = store.newest_checkpoint_epoch(key.group_id)
            return image

    def _write(
        self, key: SharePartitionKey, append: Callable[[PartitionLog], Completion[None] | None]
    ) -> Completion[None]:
        """Ends with the append, once the log is open, or when there turns out to be nothing to append to."""
        return self._tasks.run(partial(self._write_when_open, key, append))

    async def _write_when_open(
        self, key: SharePartitionKey, append: Callable[[PartitionLog], Completion[None] | None]
    ) -> None:
        log = await self._open_log(key.topic_id_partition)
        if log is not None:
            # The last leader's decisions may still be on their way into the log.
            await self.decisions_of(key.topic_id_partition, log).drained()
            appended = append(log)
            if appended is not None:
                await appended


def _undecided_image(log: PartitionLog, group_incarnation: int, state_epoch: int) -> ShareStateImage:
    """The state of a share-partition before its first fetch."""
    image = ShareStateImage(log.control_runs)
    image.group_incarnation = group_incarnation
    image.state_epoch = state_epoch
    return image
