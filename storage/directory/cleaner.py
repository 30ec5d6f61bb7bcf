"""The cleaner: one task that cleans the open logs, one at a time, the dirtiest first.

Compactions come first, the dirtiest log first, as in Apache Kafka. Logs that are worth cleaning only for
obsolete share state follow. When no log is left, the task waits `log.cleaner.backoff.ms`. After an error of
the disk a log stays unchanged and is tried again after a pause, which doubles. A damaged log is not cleaned
any more until the broker starts again. Both leave the other logs unaffected.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from contextlib import suppress

from barnabas.protocol.varint import RecordFormatError
from barnabas.runtime.logging import get_logger
from barnabas.runtime.moment import Moment
from barnabas.storage.cleaner.log_cleaning import CleaningPlan
from barnabas.storage.directory.checkpoints import Checkpoints
from barnabas.storage.errors import StorageError
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log_config import StorageConfig
from barnabas.storage.topic_partition import TopicPartition

RETRY_BACKOFF_MS_MIN = 15_000
RETRY_BACKOFF_MS_MAX = 15 * 60_000
"""The pause after an error of the disk: the first one, and the longest."""

logger = get_logger("cleaner")


class LogCleaner:
    """Cleans the logs that `logs` returns. `checkpoints` keeps the end of each log's compaction."""

    def __init__(
        self,
        logs: Callable[[], Collection[PartitionLog]],
        checkpoints: Checkpoints,
        storage: StorageConfig,
        moment: Callable[[], Moment],
    ) -> None:
        self.run_count = 0
        """The number of cleanings."""
        self.cleaned_bytes = 0
        """The bytes that all cleanings have removed."""
        self._logs = logs
        self._checkpoints = checkpoints
        self._storage = storage
        self._moment = moment
        self._uncleanable: set[TopicPartition] = set()
        self._retry: dict[TopicPartition, tuple[int, int]] = {}
        """After an error of the disk: (monotonic time in ms of the next try, length of the pause in ms)."""
        self._renewed: set[TopicPartition] = set()
        """Logs whose groups were asked for new checkpoints since the last wait."""
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def uncleanable_count(self) -> int:
        """The number of logs that are no longer cleaned, because of damage or a bug of ours."""
        return len(self._uncleanable)

    def start(self) -> None:
        if self._storage.cleaner_enabled:
            self._task = asyncio.get_running_loop().create_task(self._work())

    async def close(self) -> None:
        """Ends at the next slice; the segments that were being cleaned stay unchanged."""
        self._stop.set()
        for log in self._logs():
            log.stop_cleaning()
        if self._task is not None:
            await self._task

    def forget(self, key: TopicPartition) -> None:
        """Forgets a deleted partition."""
        self._uncleanable.discard(key)
        self._retry.pop(key, None)

    async def clean_due(self) -> None:
        """Cleans until no log is worth cleaning."""
        self._renewed.clear()
        while not self._stop.is_set() and (chosen := await self._choose()) is not None:
            await self._clean(*chosen)

    async def _work(self) -> None:
        while not self._stop.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(self._storage.cleaner_backoff_ms / 1000):
                    await self._stop.wait()
            try:
                await self.clean_due()
            except Exception as error:  # a bug of ours, which must not end the cleaner
                logger.error("cleaning failed", exc_info=error)

    async def _choose(self) -> tuple[PartitionLog, CleaningPlan] | None:
        """The log to clean next, and its plan."""
        best: tuple[PartitionLog, CleaningPlan] | None = None
        for log in list(self._logs()):
            if self._stop.is_set():
                return None
            if not self._may_be_cleaned(log):
                continue
            plan = await self._plan(log)
            if plan is not None and plan.is_due and (best is None or _urgency(plan) > _urgency(best[1])):
                best = log, plan
        return best

    def _may_be_cleaned(self, log: PartitionLog) -> bool:
        key = log.topic_partition
        if log.offline is not None or log.segment_count == 1 or key in self._uncleanable:
            return False
        retry = self._retry.get(key)
        return retry is None or self._moment().now_ms >= retry[0]

    async def _plan(self, log: PartitionLog) -> CleaningPlan | None:
        try:
            plan = await log.plan_cleaning(
                self._checkpoints.cleaned_offset(log.topic_partition), self._moment().wall_ms
            )
            if plan.pinning_offset and log.topic_partition not in self._renewed:
                self._renewed.add(log.topic_partition)
                log.renew_checkpoints_below(plan.pinning_offset)
        except Exception as error:
            self._failed(log, error)
            return None
        return plan

    async def _clean(self, log: PartitionLog, plan: CleaningPlan) -> None:
        key = log.topic_partition
        try:
            cleaned = await log.clean(plan, self._moment().wall_ms)
            if cleaned is None:
                return
            if cleaned.compacted_offset is not None:
                await self._checkpoints.write_cleaned(key, cleaned.compacted_offset)
        except Exception as error:
            self._failed(log, error)
            return
        self._retry.pop(key, None)
        self.run_count += 1
        self.cleaned_bytes += cleaned.read_bytes - cleaned.written_bytes

    def _failed(self, log: PartitionLog, error: Exception) -> None:
        """Decides whether and when the log is tried again. The other logs are cleaned in every case."""
        key = log.topic_partition
        if not isinstance(error, OSError | StorageError | RecordFormatError):  # a bug of ours
            self._uncleanable.add(key)
            logger.error(
                "cleaning a log failed, and is not tried again", log=key.directory_name, exc_info=error
            )
            return
        if log.offline is not None and not isinstance(error, StorageError):
            return  # it was closed or deleted meanwhile
        if isinstance(error, RecordFormatError):
            self._uncleanable.add(key)
            logger.error("a damaged log is no longer cleaned", log=key.directory_name, reason=str(error))
            return
        _, waited_ms = self._retry.get(key, (0, 0))
        wait_ms = min(max(2 * waited_ms, RETRY_BACKOFF_MS_MIN), RETRY_BACKOFF_MS_MAX)
        self._retry[key] = self._moment().now_ms + wait_ms, wait_ms
        logger.error(
            "cleaning a log failed, and is tried again",
            log=key.directory_name,
            wait_ms=wait_ms,
            reason=str(error),
        )


def _urgency(plan: CleaningPlan) -> tuple[bool, float]:
    if plan.dirty is not None and plan.dirty.is_due:
        return True, plan.dirty.ratio
    return False, sum(measured.cleanable for measured in plan.state_bytes)
