"""A micro-batch in transactions, step by step against Apache Kafka, without Spark."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from unittest.mock import AsyncMock, create_autospec, patch

import pytest

from barnabas.client.cluster.topics import LATEST, Isolation
from barnabas.client.consume.topic_reader import ReadSettings
from barnabas.client.errors import broker_error
from barnabas.client.produce.transactions import Transactions, Writer
from barnabas.client.topic_partition import TopicPartition
from barnabas.pipeline.decoding.arrow import pa
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.reading import PartitionRanges, read_records
from barnabas.pipeline.topic_sink import committing
from barnabas.pipeline.topic_sink.committing import Committing, read_decision
from barnabas.pipeline.topic_sink.decision import Decision, Names, encode_decision
from barnabas.pipeline.topic_sink.sink_options import SinkOptions, parse_sink_options
from barnabas.pipeline.topic_sink.task_writing import Job, TaskAttempt, TaskMessage
from barnabas.pipeline.topic_sink.writers import TopicStreamWriter, write_task
from barnabas.pipeline.topic_source.catalog import Catalog
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from tests.clients.cluster import Cluster, unique
from tests.clients.polling import eventually

COMMITTED = Isolation.READ_COMMITTED


class KilledError(Exception):
    """The driver ends here."""


class KilledAtTasks(Transactions):
    """Transactions of a driver that is killed when it is to end the first transaction of a task."""

    async def end(self, writer: Writer, *, commit: bool) -> None:
        if "-task-" in str(writer.transactional_id):
            raise KilledError
        await super().end(writer, commit=commit)


class Query:
    """A streaming query as the sink sees it: tasks that write, a driver that commits."""

    def __init__(self, cluster: Cluster) -> None:
        self.topic = cluster.topic(2)
        self.id = unique("query")
        self.options: SinkOptions = parse_sink_options({"servers": cluster.bootstrap, "topic": self.topic})

    def task(self, batch_id: int, values: list[str], task: int = 0, attempt: int = 0) -> TaskMessage:
        """The message of a task of a micro-batch that has written these values."""
        job = Job(self.id, batch_id, is_stream=True)
        rows = pa.RecordBatch.from_pydict({"value": values})
        return write_task(self.options, job, TaskAttempt(task, attempt), iter([rows]))

    def commit(self, batch_id: int, *messages: TaskMessage) -> None:
        TopicStreamWriter(self.options).commit(messages, batch_id)

    def abort(self, batch_id: int, *messages: TaskMessage) -> None:
        TopicStreamWriter(self.options).abort(messages, batch_id)

    def decide(self, batch_id: int, *messages: TaskMessage) -> None:
        """A driver's commit that is killed after the decision, before it ends a task's transaction."""
        names = Job(self.id, batch_id, is_stream=True).names(self.options)

        async def go() -> None:
            async with self.transactions(KilledAtTasks) as transactions:
                writers = [one.writer for one in messages if one.writer]
                await Committing(transactions, names, batch_id).commit(writers, self.topic)

        with pytest.raises(KilledError):
            asyncio.run(go())
        assert self.decided_batch() == batch_id

    @asynccontextmanager
    async def transactions(self, kind: type[Transactions] = Transactions) -> AsyncGenerator[Transactions]:
        cluster = self.options.servers.cluster()
        transactions = kind(cluster)
        try:
            yield transactions
        finally:
            transactions.close()
            cluster.close()

    def end(self, writer: Writer | None, *, commit: bool) -> None:
        async def go() -> None:
            assert writer is not None
            async with self.transactions() as transactions:
                await transactions.end(writer, commit=commit)

        asyncio.run(go())

    def fence(self, task: int) -> None:
        """Aborts a transaction in a new epoch, as the broker does if it takes too long."""

        async def go() -> None:
            async with self.transactions() as transactions:
                await transactions.begin(
                    Job(self.id, 0, is_stream=True).names(self.options).task(task, 0), 60_000
                )

        asyncio.run(go())

    def decided_batch(self) -> int | None:
        async def go() -> int | None:
            async with self.transactions() as transactions:
                names = Job(self.id, 0, is_stream=True).names(self.options)
                decision = await read_decision(transactions, names)
                return None if decision is None or decision.is_withdrawn else decision.batch_id

        return asyncio.run(go())

    def ends(self, isolation: Isolation) -> dict[TopicIdPartition, int | None]:
        """Where the topic's partitions end for a reader."""
        catalog = Catalog(self.options.servers)
        try:
            (topic,) = catalog.find([self.topic])
            return catalog.offsets(topic.partitions, LATEST, isolation)
        finally:
            catalog.close()

    def values(self) -> list[str]:
        """The values that a reader of committed records gets, once no transaction is open any more."""
        eventually(
            lambda: self.ends(COMMITTED) == self.ends(Isolation.READ_UNCOMMITTED),
            awaited="no transaction is open",
        )
        return self.values_now()

    def values_now(self) -> list[str]:
        """The values that a reader of committed records gets, in front of the first open transaction."""
        ends = self.ends(COMMITTED)
        wanted = [PartitionRanges(self.topic, one, ((0, end - 1, 0),)) for one, end in ends.items() if end]
        settings = ReadSettings(isolation=COMMITTED)
        batches = read_records(self.options.servers, wanted, ["value"], settings=settings)
        return sorted(value.decode() for batch in batches for value in batch.column(0).to_pylist())


@pytest.fixture
def query(cluster: Cluster) -> Query:
    return Query(cluster)


def test_a_batch_shows_once_it_is_committed(query: Query) -> None:
    messages = [query.task(0, ["a"], task=0), query.task(0, ["b"], task=1)]
    assert query.values_now() == []
    query.commit(0, *messages)
    assert query.values() == ["a", "b"]
    query.commit(1, query.task(1, ["c"]))
    assert query.values() == ["a", "b", "c"]


def test_a_batch_that_is_replayed_after_its_commit_writes_nothing(query: Query) -> None:
    query.commit(0, query.task(0, ["a"]))
    replayed = query.task(0, ["a"])
    assert replayed.was_decided
    query.commit(0, replayed)
    assert query.values() == ["a"]


def test_a_driver_that_dies_before_the_decision_leaves_nothing(query: Query) -> None:
    query.task(0, ["a"], task=0)
    query.task(0, ["b"], task=1)
    query.commit(0, query.task(0, ["a", "b"], task=0))
    assert query.values() == ["a", "b"]


def test_a_driver_that_dies_after_the_decision_is_rolled_forward(query: Query) -> None:
    query.decide(0, query.task(0, ["a"], task=0), query.task(0, ["b"], task=1))
    assert query.values_now() == []
    replayed = [query.task(0, ["a"], task=0), query.task(0, ["b"], task=1)]
    assert all(one.was_decided for one in replayed)
    query.commit(0, *replayed)
    assert query.values() == ["a", "b"]


def test_a_driver_that_dies_while_it_commits_is_rolled_forward(query: Query) -> None:
    messages = [query.task(0, ["a"], task=0), query.task(0, ["b"], task=1)]
    query.decide(0, *messages)
    query.end(messages[0].writer, commit=True)
    query.commit(0, query.task(0, ["a", "b"]))
    assert query.values() == ["a", "b"]


def test_spark_aborts_a_failed_commit_and_decided_transactions_stay(query: Query) -> None:
    messages = [query.task(0, ["a"])]
    query.decide(0, *messages)
    query.abort(0, *messages)
    query.commit(0, query.task(0, ["a"]))
    assert query.values() == ["a"]


def test_undecided_transactions_are_aborted(query: Query) -> None:
    message = query.task(0, ["a"])
    query.abort(0, message)
    query.commit(0, query.task(0, ["b"]))
    assert query.values() == ["b"]


def test_an_attempt_that_failed_does_not_show(query: Query) -> None:
    query.task(0, ["lost"], attempt=0)
    query.commit(0, query.task(0, ["a"], attempt=1))
    assert query.values() == ["a"]


def test_a_transaction_that_ended_too_soon_stops_the_batch_before_the_decision(query: Query) -> None:
    messages = [query.task(0, ["a"], task=0), query.task(0, ["b"], task=1)]
    query.fence(1)
    with pytest.raises(PipelineError, match=r"task-1\.0 was ended before it could be committed"):
        query.commit(0, *messages)
    assert query.decided_batch() is None
    query.abort(0, *messages)
    query.commit(0, query.task(0, ["a", "b"]))
    assert query.values() == ["a", "b"]


def test_a_decided_batch_that_is_lost_whole_is_written_again(query: Query) -> None:
    query.decide(0, query.task(0, ["a"], task=0), query.task(0, ["b"], task=1))
    query.fence(0)
    query.fence(1)
    with pytest.raises(PipelineError, match="started again, the query writes it again"):
        query.commit(0, query.task(0, ["a", "b"]))
    assert query.decided_batch() is None
    query.commit(0, query.task(0, ["a", "b"]))
    assert query.values() == ["a", "b"]


def test_a_decided_batch_that_is_lost_in_part_is_an_error_each_time(query: Query) -> None:
    query.decide(0, query.task(0, ["a"], task=0), query.task(0, ["b"], task=1))
    query.fence(1)
    for _ in range(2):
        with pytest.raises(PipelineError, match=r"a part of it is lost: \S+-task-1\.0 ended before"):
            query.commit(0, query.task(0, ["a", "b"]))
    assert query.values() == ["a"]


def test_a_checkpoint_older_than_the_written_records_is_an_error(query: Query) -> None:
    query.commit(0, query.task(0, ["a"]))
    query.commit(1, query.task(1, ["b"]))
    with pytest.raises(PipelineError, match="the checkpoint is older"):
        query.task(0, ["a"])


def test_strays_of_a_crash_are_aborted_so_that_readers_go_on(query: Query) -> None:
    query.task(0, ["a"], task=0)
    query.task(0, ["b"], task=1)
    query.task(0, ["c"], task=7)
    query.commit(0, query.task(0, ["a"], task=0), query.task(0, ["b"], task=1))
    assert query.values() == ["a", "b"]


def test_a_decided_transaction_that_the_broker_has_forgotten_is_not_taken_for_lost() -> None:
    names = Names("barnabas-query")
    writer = Writer(names.task(0, 0), 5, 0)
    decided = encode_decision(Decision(3, 7, "orders", (writer,)), names)
    forgetful = create_autospec(Transactions, instance=True)
    forgetful.coordinators = None
    forgetful.begin.return_value = Writer(names.driver, 6, 0)
    forgetful.end.side_effect = broker_error(ErrorCode.invalid_producer_id_mapping, None)
    forgetful.describe.return_value = None
    offsets = {TopicPartition("orders", index): committed for index, committed in decided.items()}

    async def main() -> None:
        with pytest.raises(PipelineError, match="whether it was committed is unknown"):
            await Committing(forgetful, names, 7).commit([], None)

    with patch.object(committing, "fetch_group_offsets", AsyncMock(return_value=offsets)):
        asyncio.run(main())
    forgetful.commit_offsets.assert_not_called()
