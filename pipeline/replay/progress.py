"""The progress of a replay: its plan, and the number of written chunks, in a directory of its own.

A chunk counts here after the sink has it. A replay that was cut short in between writes that chunk again
under the same number, and the sink recognizes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.pipeline.errors import OptionError, PipelineError
from barnabas.pipeline.replay.plan import Plan, decode_plan, encode_plan
from barnabas.pipeline.tables.hadoop_files import HadoopFiles
from barnabas.pipeline.tables.numbered_files import NumberedFiles

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PLAN: Final = "plan.json"
_DONE: Final = "done"


class ProgressFiles:
    """The progress of one replay. One process replays at a time; a second one finds that out and stops."""

    def __init__(self, spark: SparkSession, directory: str) -> None:
        """Raises `PipelineError` for a filesystem that Hadoop doesn't know."""
        self._files = HadoopFiles(spark, directory)
        self._done = NumberedFiles(self._files, _DONE)
        self._directory = directory

    def plan(self, asked: str) -> Plan | None:
        """The plan of this replay; None for a new one. Raises `OptionError` for another replay's plan."""
        if not self._files.exists(_PLAN):
            return None
        plan = decode_plan(self._files.read_text(_PLAN), self._files.uri(_PLAN))
        if plan.asked != asked:
            raise OptionError(
                "progress",
                f"{self._directory} belongs to a replay with other options; name another directory",
            )
        return plan

    def begin(self, plan: Plan) -> None:
        """Keeps the plan. Raises `PipelineError` if another process has just begun."""
        if not self._files.create_text(_PLAN, encode_plan(plan)):
            raise PipelineError(f"{self._directory}: another process has begun this replay.")

    def done(self) -> tuple[int, int]:
        """The number of written chunks, and of their records."""
        newest = self._done.newest()
        return (0, 0) if newest is None else (newest[0], int(newest[1]))

    def reach(self, chunk_count: int, record_count: int) -> None:
        """Notes these numbers. Raises `PipelineError` if another process has noted this chunk."""
        if not self._done.add(chunk_count, str(record_count)):
            raise PipelineError(f"{self._directory}: another process goes on with this replay.")
