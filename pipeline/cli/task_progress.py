"""Shows the progress of a job that does not report it: a thread looks at it now and then."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark import StatusTracker
    from pyspark.sql import SparkSession

    from barnabas.pipeline.cli.console import Console

LOOK_SECONDS: Final = 0.25


@contextmanager
def polled_progress(
    console: Console,
    title: str,
    look: Callable[[], tuple[int, int]],
    *,
    unit: str,
    look_seconds: float = LOOK_SECONDS,
    total_grows: bool = False,
) -> Generator[None]:
    """While the block runs, a bar of the counts that `look` returns: (done, total). A thread calls it.

    If the block ends without an error, the bar is full. While the total grows, it would mislead, so only the
    first count is shown.
    """
    ended, succeeded = threading.Event(), threading.Event()

    def watch() -> None:
        total = 0
        with console.progress(title, total=None if total_grows else 0, unit=unit) as progress:
            while not ended.wait(look_seconds):
                done, total = look()
                progress.reach(done, total=None if total_grows else total)
            if succeeded.is_set():
                _, total = look()
                progress.reach(total, total=None if total_grows else total)

    watcher = threading.Thread(target=watch, name="progress", daemon=True)
    watcher.start()
    try:
        yield
        succeeded.set()
    finally:
        ended.set()
        watcher.join()


@contextmanager
def task_progress(
    spark: SparkSession, console: Console, title: str, *, several_jobs: bool = False
) -> Generator[None]:
    """While the block runs, a bar with the tasks of all stages that Spark has begun.

    With several jobs it shows only the number of tasks that are done, because each job adds tasks.
    """
    stages = _Stages(spark.sparkContext.statusTracker())
    with polled_progress(console, title, stages.task_counts, unit="tasks", total_grows=several_jobs):
        yield


class _Stages:
    """All stages that were under way at one of the looks."""

    def __init__(self, tracker: StatusTracker) -> None:
        self._tracker = tracker
        self._seen: dict[int, tuple[int, int]] = {}

    def task_counts(self) -> tuple[int, int]:
        """The tasks that are done, and all."""
        self._seen.update(_stages(self._tracker))
        counts = self._seen.values()
        return sum(done for done, _ in counts), sum(total for _, total in counts)


def _stages(tracker: StatusTracker) -> dict[int, tuple[int, int]]:
    """By stage under way, the number of tasks that are done, and of all tasks."""
    found: dict[int, tuple[int, int]] = {}
    for stage_id in tracker.getActiveStageIds():
        stage = tracker.getStageInfo(stage_id)
        if stage is not None:
            found[stage_id] = (stage.numCompletedTasks, stage.numTasks)
    return found
