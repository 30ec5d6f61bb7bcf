"""The writers that Spark calls: for a batch write, and for each micro-batch of a stream.

Spark pickles them for its tasks and makes new ones on the driver: they hold options, and no connections.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable, Iterator, Sequence

from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from barnabas.client.errors import ConsumerError
from barnabas.client.produce.transactions import Transactions, Writer
from barnabas.pipeline.columnar import RecordBatch
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.topic_sink.committing import Committing
from barnabas.pipeline.topic_sink.sink_options import SinkOptions
from barnabas.pipeline.topic_sink.task_writing import (
    Job,
    TaskAttempt,
    TaskMessage,
    TaskWriting,
    stream_job,
    this_attempt,
)

log = logging.getLogger(__name__)

Messages = Sequence[WriterCommitMessage | None]
_Step = Callable[[Committing], Awaitable[None]]


class TopicWriter(DataSourceArrowWriter):
    """A batch write. In transactions its rows become visible together, unless the driver dies meanwhile."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        self._job = Job(f"batch-{uuid.uuid4()}", 0, is_stream=False)

    def write(self, iterator: Iterator[RecordBatch]) -> TaskMessage:
        return write_task(self._options, self._job, this_attempt(), iterator)

    def commit(self, messages: Messages) -> None:
        writers = _writers(messages)
        if writers:
            _run(self._options, self._job, lambda committing: committing.commit_undecided(writers))

    def abort(self, messages: Messages) -> None:
        writers = _writers(messages)
        if writers:
            _run(self._options, self._job, lambda committing: committing.abort_all(writers))


class TopicStreamWriter(DataSourceStreamArrowWriter):
    """The micro-batches of a stream. A batch that Spark writes again counts once; see the package."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[RecordBatch]) -> TaskMessage:
        return write_task(self._options, stream_job(), this_attempt(), iterator)

    def commit(self, messages: Messages, batchId: int) -> None:  # noqa: N803  Spark's name
        told = _told(messages)
        writers = _writers(messages)
        if not writers and not any(message.was_decided for message in told):
            return
        topic = next((message.topic for message in told if message.writer is not None), None)
        _run(self._options, told[0].job, lambda committing: committing.commit(writers, topic))

    def abort(self, messages: Messages, batchId: int) -> None:  # noqa: N803  Spark's name
        """Spark calls this after a failed commit, too, when the batch may have been decided."""
        writers = _writers(messages)
        if not writers:
            return
        try:
            _run(self._options, _told(messages)[0].job, lambda committing: committing.abort(writers))
        except (ConsumerError, PipelineError) as error:
            log.warning("Batch %d is left open, for the broker to abort: %s", batchId, error)


def write_task(
    options: SinkOptions, job: Job, attempt: TaskAttempt, batches: Iterator[RecordBatch]
) -> TaskMessage:
    """One attempt of a task: writes the rows, in an event loop of its own."""
    return asyncio.run(_write(options, job, attempt, batches))


async def _write(
    options: SinkOptions, job: Job, attempt: TaskAttempt, batches: Iterator[RecordBatch]
) -> TaskMessage:
    writing = TaskWriting(options, job, attempt)
    try:
        return await writing.write(batches)
    finally:
        writing.close()


def _run(options: SinkOptions, job: Job, step: _Step) -> None:
    asyncio.run(_take_step(options, job, step))


async def _take_step(options: SinkOptions, job: Job, step: _Step) -> None:
    cluster = options.servers.cluster()
    transactions = Transactions(cluster)
    try:
        await step(Committing(transactions, job.names(options), job.batch_id, job.run))
    finally:
        transactions.close()
        cluster.close()


def _told(messages: Messages) -> list[TaskMessage]:
    """The messages of the tasks that did not fail."""
    return [message for message in messages if isinstance(message, TaskMessage)]


def _writers(messages: Messages) -> list[Writer]:
    return [message.writer for message in _told(messages) if message.writer is not None]
