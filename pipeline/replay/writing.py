"""Writes rows to a topic under a number: written again under that number, they count once.

The sink `kafka-topic` does that for the micro-batches of a stream. This uses its parts for a batch of rows in
the same way: each task writes, the driver commits.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, cast

from barnabas.pipeline.columnar import RecordBatch
from barnabas.pipeline.replay.throttle import Throttle
from barnabas.pipeline.tables.arrow_types import map_in_arrow
from barnabas.pipeline.topic_sink.columns import check_schema
from barnabas.pipeline.topic_sink.sink_options import SinkOptions, parse_sink_options
from barnabas.pipeline.topic_sink.task_writing import Job, TaskMessage, this_attempt
from barnabas.pipeline.topic_sink.writers import TopicStreamWriter, write_task

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MESSAGE: Final = "message"


class NumberedWriter:
    """Writes to the topics in options of `kafka-topic`."""

    def __init__(self, given: Mapping[str, str], name: str, throttle: Throttle | None) -> None:
        """`name` identifies the writer: each name has its own numbers. Raises `OptionError`."""
        self._options = parse_sink_options(given)
        self._name = name
        self._throttle = throttle

    def write(self, frame: DataFrame, number: int) -> int:
        """Writes the rows; returns their number, 0 if they were written before. Raises `PipelineError`."""
        from pyspark.sql.types import BinaryType, StructType

        check_schema(frame.schema, self._options.topic)
        job = Job(self._name, number, is_stream=True)
        task = _WritingTask(self._options, job, self._throttle)
        rows = map_in_arrow(frame, task, StructType().add(_MESSAGE, BinaryType())).collect()
        messages = [cast("TaskMessage", pickle.loads(row[_MESSAGE])) for row in rows]
        if messages:
            TopicStreamWriter(self._options).commit(messages, number)
        return sum(message.row_count for message in messages)


class _WritingTask:
    """The work of each task: writes its rows, and returns its message to the driver."""

    def __init__(self, options: SinkOptions, job: Job, throttle: Throttle | None) -> None:
        self._options = options
        self._job = job
        self._throttle = throttle

    def __call__(self, batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
        from barnabas.pipeline.decoding.arrow import pa

        throttled = batches if self._throttle is None else self._throttle.throttled(batches)
        message = write_task(self._options, self._job, this_attempt(), throttled)
        yield pa.RecordBatch.from_pydict({_MESSAGE: pa.array([pickle.dumps(message)], pa.binary())})
