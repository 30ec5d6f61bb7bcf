"""One task's part: encodes and produces its rows. In a transaction, the driver commits them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.cluster.topics import Topic, Topics
from barnabas.client.errors import BrokerError
from barnabas.client.produce.batch_writer import BatchWriter
from barnabas.client.produce.transactions import Transactions, Writer
from barnabas.pipeline.columnar import RecordBatch
from barnabas.pipeline.errors import OptionError, PipelineError
from barnabas.pipeline.topic_sink.columns import topics_of
from barnabas.pipeline.topic_sink.committing import is_decided, read_decision
from barnabas.pipeline.topic_sink.decision import Names
from barnabas.pipeline.topic_sink.encoding import EncodedBatch, Encoder, Mark, partitions_by_topic
from barnabas.pipeline.topic_sink.sink_options import Once, SinkOptions
from barnabas.protocol.errors import ErrorCode

RUN_LENGTH: Final = 8
"""The length of the part of a run's id that distinguishes it from the query's other runs."""


class Job(NamedTuple):
    """A micro-batch of a query, or a batch write, which has a random id and batch 0."""

    query_id: str
    batch_id: int
    is_stream: bool
    run: str = ""
    """Distinguishes the runs of a query; empty for a batch write, which has one run."""

    def names(self, options: SinkOptions) -> Names:
        return Names(f"{options.transactional_id_prefix}-{self.query_id}")


class TaskAttempt(NamedTuple):
    """One attempt of one task."""

    task: int
    attempt: int


@dataclass(frozen=True)
class TaskMessage(WriterCommitMessage):
    """The message of a task to the driver."""

    job: Job
    row_count: int
    writer: Writer | None = None
    """The writer with the open transaction; None if there is none."""
    topic: str | None = None
    """One of the written topics."""
    was_decided: bool = False
    """The batch was decided before, and nothing was written."""


def this_attempt() -> TaskAttempt:
    """The attempt that this process works for."""
    context = _context()
    return TaskAttempt(context.partitionId(), context.attemptNumber())


def stream_job() -> Job:
    """The micro-batch that this process works for."""
    context = _context()
    query_id = context.getLocalProperty("sql.streaming.queryId")
    batch_id = context.getLocalProperty("streaming.sql.batchId")
    if query_id is None or batch_id is None:
        raise PipelineError("Spark doesn't say which query and batch a task writes for.")
    # Spark names a stream's job group after the run's id; another name may have other characters.
    group = context.getLocalProperty("spark.jobGroup.id") or ""
    run = "".join(character for character in group if character.isascii() and character.isalnum())[
        :RUN_LENGTH
    ]
    return Job(query_id, int(batch_id), is_stream=True, run=run)


def _context() -> Any:
    context = TaskContext.get()
    if context is None:
        raise PipelineError("This runs in Spark's tasks only.")
    return context


class TaskWriting:
    """One attempt at writing rows. For one event loop; `close` it once."""

    def __init__(self, options: SinkOptions, job: Job, attempt: TaskAttempt) -> None:
        self._options = options
        self._job = job
        self._attempt = attempt
        self._cluster: Cluster = options.servers.cluster()
        self._topics = Topics(self._cluster)
        self._transactions = Transactions(self._cluster)
        self._producer: BatchWriter | None = None
        self._writer: Writer | None = None
        self._known: dict[str, Topic] = {}
        self._added: set[tuple[str, int]] = set()

    def close(self) -> None:
        if self._producer is not None:
            self._producer.close()
        self._transactions.close()
        self._topics.close()
        self._cluster.close()

    async def write(self, batches: Iterable[RecordBatch]) -> TaskMessage:
        """Writes the rows. Raises `PipelineError` and `ConsumerError`."""
        once = await self._once()
        if once is Once.TRANSACTIONS and self._job.is_stream and await self._was_decided():
            return TaskMessage(self._job, 0, was_decided=True)
        mark = Mark(self._job.query_id, self._job.batch_id, self._attempt.task)
        encoder = Encoder(
            self._attempt.task,
            self._options.batch_bytes,
            self._options.compression,
            mark if once is Once.HEADER else None,
            self._options.topic,
        )
        for batch in batches:
            if batch.num_rows:
                await self._find(topics_of(batch, self._options.topic))
                for encoded in encoder.add(batch, self._known):
                    await self._produce([encoded], once)
        await self._produce(list(encoder.finish()), once)
        if self._producer is not None:
            await self._producer.flush()
        topic = next(iter(sorted(self._known)), None)
        is_open = once is Once.TRANSACTIONS and self._producer is not None
        return TaskMessage(self._job, encoder.row_count, self._writer if is_open else None, topic)

    async def _once(self) -> Once:
        once = self._options.once
        if once in (Once.HEADER, Once.OFF):
            return once
        has_transactions = await self._transactions.are_supported()
        if once is Once.TRANSACTIONS and not has_transactions:
            raise PipelineError(
                "exactlyOnce=transactions: the brokers have none; header works with any, auto picks it."
            )
        return Once.TRANSACTIONS if has_transactions else Once.HEADER

    async def _was_decided(self) -> bool:
        names = self._job.names(self._options)
        return is_decided(await read_decision(self._transactions, names), self._job.batch_id)

    async def _find(self, names: set[str]) -> None:
        unknown = names - self._known.keys()
        if unknown:
            found = await self._topics.find(sorted(unknown))
            self._known.update((topic.name, topic) for topic in found)

    async def _produce(self, batches: Sequence[EncodedBatch], once: Once) -> None:
        if not batches:
            return
        producer = self._producer or await self._begin(once)
        if once is Once.TRANSACTIONS:
            await self._add(partitions_by_topic(batches))
        for topic, partition, body in batches:
            await producer.write(topic, partition, body)

    async def _begin(self, once: Once) -> BatchWriter:
        if once is Once.TRANSACTIONS:
            self._writer = await self._begin_transaction()
        else:
            self._writer = await self._transactions.begin_idempotent()
        self._producer = BatchWriter(self._cluster, self._writer)
        return self._producer

    async def _begin_transaction(self) -> Writer:
        name = self._job.names(self._options).task(*self._attempt, self._job.run)
        try:
            return await self._transactions.begin(name, self._options.transaction_timeout_ms)
        except BrokerError as error:
            if error.code is not ErrorCode.invalid_transaction_timeout:
                raise
            reason = "is more than the brokers' transaction.max.timeout.ms allows"
            raise OptionError("transactionTimeoutMs", reason) from error

    async def _add(self, wanted: dict[str, set[int]]) -> None:
        """Adds partitions to the transaction that are not in it."""
        new = {
            topic: {index for index in indexes if (topic, index) not in self._added}
            for topic, indexes in wanted.items()
        }
        new = {topic: indexes for topic, indexes in new.items() if indexes}
        if new and self._writer is not None:
            await self._transactions.add(self._writer, new)
            self._added |= {(topic, index) for topic, indexes in new.items() for index in indexes}
