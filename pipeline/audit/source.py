"""The audit's passes as a data source for Spark: a task for each partition, or for some of its groups.

It is internal, not a format for users. `audit` makes its plan once and passes it as an option, so all tables
are about the same bytes of the log. Executors must see the data directories under the driver's paths.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, Final

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from barnabas.pipeline.audit.log_replay import DELIVERIES, ReplayTask, replay
from barnabas.pipeline.audit.state_replay import DataPartition, StateTask, replay_state_topic
from barnabas.pipeline.audit.tables import DELIVERY_COLUMNS, FINDING_COLUMNS
from barnabas.pipeline.columnar import RecordBatch
from barnabas.pipeline.log_source.segment_slice import SegmentSlice

FORMAT: Final = "barnabas-audit"
AuditTask = ReplayTask | StateTask
"""A partition with share state in its own log, or a partition of the state topic."""

PLAN_OPTION: Final = "plan"
ANSWER_OPTION: Final = "answer"


def encode_plan(tasks: Sequence[AuditTask]) -> str:
    """The tasks as an option of the format."""
    return json.dumps([asdict(task) for task in tasks])


def decode_plan(plan: str) -> list[AuditTask]:
    """The tasks from the option of the format."""
    return [_decode_task(fields) for fields in json.loads(plan)]


def _decode_task(fields: dict[str, Any]) -> AuditTask:
    pieces = [SegmentSlice(**piece) for piece in fields.pop("pieces")]
    if "data" not in fields:
        return ReplayTask(pieces=pieces, **fields)
    data = [_decode_data_partition(partition) for partition in fields.pop("data")]
    return StateTask(pieces=pieces, data=data, **fields)


def _decode_data_partition(fields: dict[str, Any]) -> DataPartition:
    newest = fields.pop("newest")
    return DataPartition(newest=None if newest is None else SegmentSlice(**newest), **fields)


class AuditSource(DataSource):
    """Returns the deliveries, or the findings."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return DELIVERY_COLUMNS if self.options[ANSWER_OPTION] == DELIVERIES else FINDING_COLUMNS

    def reader(self, schema: StructType) -> DataSourceReader:
        return _Reader(self.options[PLAN_OPTION], self.options[ANSWER_OPTION])


class _Partition(InputPartition):
    def __init__(self, task: AuditTask) -> None:
        super().__init__(task)
        self.task = task


class _Reader(DataSourceReader):
    def __init__(self, plan: str, answer: str) -> None:
        self._plan = plan
        self._answer = answer

    def partitions(self) -> Sequence[InputPartition]:
        return [_Partition(task) for task in decode_plan(self._plan)]

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        """The task's rows as Arrow batches. With nothing to read, Spark calls it once without a task."""
        if not isinstance(partition, _Partition):
            return iter(())
        task = partition.task
        if isinstance(task, StateTask):
            return replay_state_topic(task, self._answer)
        return replay(task, self._answer)

    def __getstate__(self) -> dict[str, Any]:
        """Leaves out the plan: a task gets its part of it with its partition."""
        return {"_plan": "[]", "_answer": self._answer}
