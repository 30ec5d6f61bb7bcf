"""Rows into batches, without a broker."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from barnabas.client.cluster.topics import Topic
from barnabas.pipeline.columnar import RecordBatch
from barnabas.pipeline.decoding.arrow import pa
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.topic_sink import encoding
from barnabas.pipeline.topic_sink.columns import topics_of
from barnabas.pipeline.topic_sink.encoding import EncodedBatch, Encoder, Mark
from barnabas.protocol.record_batch import Compression, seal_batch
from barnabas.protocol.records import Record, iterate_records

ORDERS = Topic("orders", UUID(int=1), 3)
TOPICS = {"orders": ORDERS}


def encoder(
    *,
    batch_bytes: int = 10**6,
    compression: Compression = Compression.NONE,
    mark: Mark | None = None,
    topic: str | None = "orders",
) -> Encoder:
    return Encoder(0, batch_bytes, compression, mark, topic)


def records(batch: EncodedBatch) -> list[Record]:
    body = batch.body
    sealed = seal_batch(
        body.records,
        base_offset=0,
        leader_epoch=-1,
        attributes=body.compression,
        last_offset_delta=body.record_count - 1,
        base_timestamp_ms=body.base_timestamp_ms,
        max_timestamp_ms=body.max_timestamp_ms,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        record_count=body.record_count,
    )
    return list(iterate_records(sealed))


def test_a_partition_keeps_the_order_of_its_rows_and_their_times() -> None:
    times = [1_700_000_000_000_500, 1_600_000_000_000_000, None]
    rows = pa.RecordBatch.from_pydict(
        {
            "value": ["a", "b", "c"],
            "partition": pa.array([2, 2, 2], pa.int32()),
            "timestamp": pa.array(times, pa.timestamp("us", tz="UTC")),
        }
    )
    one = encoder()
    assert list(one.add(rows, TOPICS)) == []
    (batch,) = one.finish()
    first, second, third = records(batch)
    assert (batch.topic, batch.partition) == ("orders", (UUID(int=1), 2))
    assert [record.value for record in (first, second, third)] == [b"a", b"b", b"c"]
    assert (first.timestamp_ms, second.timestamp_ms) == (1_700_000_000_000, 1_600_000_000_000)
    assert batch.body.max_timestamp_ms == third.timestamp_ms > first.timestamp_ms


@pytest.mark.parametrize("compression", Compression)
def test_every_codec_can_be_read_again(compression: Compression) -> None:
    one = encoder(compression=compression)
    headers = [[{"key": "h", "value": b"1"}, {"key": "h", "value": None}], None, []]
    rows = pa.RecordBatch.from_pydict(
        {"key": [b"k", None, b""], "value": [b"v", None, b""], "headers": headers, "partition": _zeros(3)}
    )
    assert list(one.add(rows, TOPICS)) == []
    (batch,) = one.finish()
    found = [(record.key, record.value, record.headers) for record in records(batch)]
    assert found == [(b"k", b"v", (("h", b"1"), ("h", None))), (None, None, ()), (b"", b"", ())]


def test_a_batch_is_handed_out_when_the_next_row_does_not_fit() -> None:
    one = encoder(batch_bytes=150)
    rows = pa.RecordBatch.from_pydict({"value": [b"x" * 40] * 10})
    full = list(one.add(rows, TOPICS))
    assert [batch.body.record_count for batch in full] == [3, 3, 3]
    assert [batch.partition.partition for batch in full] == [0, 1, 2]
    assert [batch.body.record_count for batch in one.finish()] == [1]
    assert full[1].body.label == "a batch of 3 records from the task's row 3 on"


def test_a_row_that_is_larger_than_a_batch_stands_alone() -> None:
    one = encoder(batch_bytes=150)
    rows = pa.RecordBatch.from_pydict({"key": [b"k"] * 3, "value": [b"x", b"y" * 1_000, b"z"]})
    found = [*one.add(rows, TOPICS), *one.finish()]
    assert [batch.body.label for batch in found] == [
        f"the record of the task's row {row}" for row in range(3)
    ]


def test_rows_that_wait_for_their_batch_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "OPEN_BYTES_MAX", 200)
    one = encoder()
    sizes = [(0, 40), (1, 90), (0, 30), (2, 20), (2, 20)]
    partitions = pa.array([partition for partition, _ in sizes], pa.int32())
    values = [b"x" * size for _, size in sizes]
    early = list(one.add(pa.RecordBatch.from_pydict({"value": values, "partition": partitions}), TOPICS))
    assert [batch.partition.partition for batch in early] == [1]
    assert [batch.body.record_count for batch in one.finish()] == [2, 2]


def test_the_same_rows_get_the_same_marks_and_changed_ones_others() -> None:
    rows = pa.RecordBatch.from_pydict({"value": ["a", "b"]})
    changed = pa.RecordBatch.from_pydict({"value": ["a", "c"]})

    def marks(given: RecordBatch) -> list[bytes | None]:
        one = encoder(mark=Mark("query", 7, 3))
        assert list(one.add(given, TOPICS)) == []
        return [record.headers[-1][1] for batch in one.finish() for record in records(batch)]

    first, second = marks(rows)
    assert first is not None
    assert first.startswith(b"query:7:3:0:")
    assert marks(rows) == [first, second]
    assert marks(changed)[0] == first
    assert marks(changed)[1] != second


def test_a_partition_that_is_not_there_is_an_error_with_its_row() -> None:
    rows = pa.RecordBatch.from_pydict({"value": ["a", "b"], "partition": pa.array([0, 3], pa.int32())})
    with pytest.raises(PipelineError, match="Row 1 names partition 3 of orders, which has 3"):
        list(encoder().add(rows, TOPICS))


def test_a_row_without_a_topic_is_an_error() -> None:
    rows = pa.RecordBatch.from_pydict({"topic": ["orders", None], "value": ["a", "b"]})
    with pytest.raises(PipelineError, match="null in its column topic"):
        topics_of(rows, None)
    assert topics_of(rows, "returns") == {"returns"}


def _zeros(count: int) -> Any:
    return pa.array([0] * count, pa.int32())


def test_rows_without_a_key_never_overfill_a_batch_that_others_have_begun() -> None:
    one = encoder(batch_bytes=150)
    rows = pa.RecordBatch.from_pydict(
        {
            "value": [b"x" * 100, b"x" * 100, b"x" * 100],
            "partition": pa.array([0, 1, None], pa.int32()),
        }
    )
    found = [*one.add(rows, TOPICS), *one.finish()]
    assert [(batch.partition.partition, batch.body.record_count) for batch in found] == [
        (0, 1),
        (1, 1),
        (2, 1),
    ]


@pytest.mark.parametrize("mark", [None, Mark("query", 7, 3)])
def test_the_mark_of_an_earlier_write_is_not_written_again(mark: Mark | None) -> None:
    headers = [[{"key": "barnabas.write", "value": b"other:1:0:5:00000000"}, {"key": "h", "value": b"1"}]] * 2
    rows = pa.RecordBatch.from_pydict({"value": ["a", "b"], "headers": headers})
    one = encoder(mark=mark)
    assert list(one.add(rows, TOPICS)) == []
    (batch,) = one.finish()
    found = [[name for name, _ in record.headers] for record in records(batch)]
    assert found == [["h"] if mark is None else ["h", "barnabas.write"]] * 2


@pytest.mark.parametrize("header", [None, {"key": None, "value": b"1"}])
def test_a_header_without_a_key_is_an_error_with_its_row(header: dict[str, Any] | None) -> None:
    rows = pa.RecordBatch.from_pydict({"value": ["a"], "headers": [[{"key": "h", "value": b""}, header]]})
    with pytest.raises(PipelineError, match="Row 0 of the task has a header without a key"):
        list(encoder().add(rows, TOPICS))
