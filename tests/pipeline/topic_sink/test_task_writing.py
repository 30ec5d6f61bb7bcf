"""One task's writing, against both brokers and without Spark."""

from __future__ import annotations

from unittest.mock import Mock, patch

import pytest
from pyspark import TaskContext

from barnabas.client.errors import ProduceError
from barnabas.client.produce.transactions import Transactions
from barnabas.pipeline.decoding.arrow import pa
from barnabas.pipeline.errors import OptionError, PipelineError
from barnabas.pipeline.topic_sink.sink_options import parse_sink_options
from barnabas.pipeline.topic_sink.task_writing import Job, TaskAttempt, TaskMessage, stream_job
from barnabas.pipeline.topic_sink.writers import write_task
from barnabas.protocol.record_batch import Compression
from tests.clients.cluster import Cluster, unique

JOB = Job("query", 0, is_stream=True)


def write(cluster: Cluster, topic: str, *values: bytes, **options: str) -> TaskMessage:
    given = parse_sink_options({"servers": cluster.bootstrap, "topic": topic, **options})
    rows = pa.RecordBatch.from_pydict({"value": pa.array(values, pa.binary())})
    return write_task(given, JOB._replace(query_id=unique("query")), TaskAttempt(0, 0), iter([rows]))


@pytest.mark.parametrize("codec", Compression)
def test_every_codec_is_one_that_brokers_read(cluster: Cluster, codec: Compression) -> None:
    message = write(
        cluster, cluster.topic(), b"a" * 1000, bytes(1000), exactlyOnce="off", compression=codec.name.lower()
    )
    assert (message.row_count, message.writer) == (2, None)


def test_a_record_that_is_too_large_is_named(cluster: Cluster) -> None:
    with pytest.raises(ProduceError, match=r"message_too_large for .*: the record of the task's row 1 \("):
        write(cluster, cluster.topic(), b"small", bytes(2_000_000), exactlyOnce="off")


def test_refusals_of_brokers_are_reported(cluster: Cluster) -> None:
    with pytest.raises(OptionError, match="transactionTimeoutMs: is more than the brokers"):
        write(cluster, cluster.topic(), b"a", transactionTimeoutMs=str(2**31 - 1))


def test_brokers_without_transactions_get_the_header(cluster: Cluster) -> None:
    """There is no such broker here: its response is simulated."""
    with patch.object(Transactions, "are_supported", return_value=False):
        assert write(cluster, cluster.topic(), b"a").writer is None
        with pytest.raises(PipelineError, match="exactlyOnce=transactions: the brokers have none"):
            write(cluster, cluster.topic(), b"a", exactlyOnce="transactions")


def test_no_rows_are_no_transaction(cluster: Cluster) -> None:
    message = write(cluster, cluster.topic())
    assert (message.row_count, message.writer, message.was_decided) == (0, None, False)


def test_a_micro_batch_is_identified_by_query_number_and_run() -> None:
    said = {
        "sql.streaming.queryId": "a-query",
        "streaming.sql.batchId": "7",
        "spark.jobGroup.id": "0c1d2e3f-0000-0000-0000-000000000000",
    }
    context = Mock(getLocalProperty=said.get)
    with patch.object(TaskContext, "get", return_value=context):
        assert stream_job() == Job("a-query", 7, is_stream=True, run="0c1d2e3f")
        said["spark.jobGroup.id"] = "a:b,c/é d"
        assert stream_job().run == "abcd"
        del said["spark.jobGroup.id"]
        assert stream_job().run == ""
        del said["streaming.sql.batchId"]
        with pytest.raises(PipelineError, match="which query and batch"):
            stream_job()
