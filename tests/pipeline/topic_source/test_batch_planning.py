"""The tasks of a scan with a query's filters, without Spark and without a broker."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from uuid import UUID

import pytest
from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, GreaterThanOrEqual

from barnabas.client.cluster.topics import EARLIEST, LATEST, Isolation, Topic
from barnabas.pipeline.errors import OptionError
from barnabas.pipeline.topic_source import batch_reader
from barnabas.pipeline.topic_source.batch_reader import FilteringTopicBatchReader, TopicTask
from barnabas.pipeline.topic_source.topic_options import parse_topic_options
from barnabas.protocol.identity import TopicIdPartition

TOPICS = {"orders": Topic("orders", UUID(int=1), 2), "returns": Topic("returns", UUID(int=2), 1)}
BOTH = '{"orders": {"0": 3, "1": -2}, "returns": {"0": 4}}'
COUNT = 10
"""Records of each partition, one in each second of 1970."""


class ScriptedCatalog:
    """Topics whose partitions have the offsets below `COUNT`."""

    def __init__(self, _: object) -> None: ...

    def close(self) -> None: ...

    def find(self, names: Collection[str]) -> list[Topic]:
        return [TOPICS[name] for name in names]

    def offsets(
        self, partitions: Collection[TopicIdPartition], at: Mapping[TopicIdPartition, int], _: Isolation
    ) -> dict[TopicIdPartition, int | None]:
        def offset(when: int) -> int | None:
            found = {EARLIEST: 0, LATEST: COUNT}.get(when, -(-when // 1000))
            return found if found <= COUNT else None

        return {one: offset(at[one]) for one in partitions}


def planned(
    monkeypatch: pytest.MonkeyPatch, *filters: Filter, **options: str
) -> list[tuple[str, int, int, int]]:
    """Topic, partition, first and last offset of each task."""
    monkeypatch.setattr(batch_reader, "Catalog", ScriptedCatalog)
    given = {"servers": "localhost:9092", "topics": "orders,returns", **options}
    reader = FilteringTopicBatchReader(parse_topic_options(given))
    assert list(reader.pushFilters(list(filters))) == []
    return [
        (one.wanted.topic, one.wanted.partition.partition, *one.wanted.ranges[0][:2])
        for one in reader.partitions()
        if isinstance(one, TopicTask)
    ]


def test_offsets_may_be_given_for_topics_that_a_filter_leaves_out(monkeypatch: pytest.MonkeyPatch) -> None:
    only = EqualTo(("topic",), "orders")
    found = planned(monkeypatch, only, startingOffsets=BOTH)
    assert found == [("orders", 0, 3, 9), ("orders", 1, 0, 9)]
    assert planned(monkeypatch, startingOffsets=BOTH) == [*found, ("returns", 0, 4, 9)]


@pytest.mark.parametrize("option", ["startingOffsets", "endingOffsets"])
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ('{"orders": {"0": 3, "1": 3}}', "names no offset for returns-0"),
        (BOTH.replace('"1"', '"2"'), "names no offset for orders-1"),
        (BOTH.replace('"1": -2', '"1": 0, "2": 0'), "names orders-2, which is not read"),
    ],
)
def test_offsets_have_to_be_given_for_each_partition_and_no_other(
    monkeypatch: pytest.MonkeyPatch, option: str, given: str, message: str
) -> None:
    with pytest.raises(OptionError, match=f"{option}: {message}"):
        planned(monkeypatch, **{option: given})


@pytest.mark.parametrize(
    ("time", "first_offset"),
    [
        (datetime(1970, 1, 1, 0, 0, 4, tzinfo=UTC), 4),
        (datetime(1970, 1, 1, 0, 0, 4, 1, tzinfo=UTC), 5),
        (datetime(1970, 1, 1, tzinfo=UTC), 0),
        (datetime(1969, 12, 31, 23, 59, 58, tzinfo=UTC), 0),
    ],
    ids=["a second", "a microsecond later", "the epoch", "before it"],
)
def test_a_least_time_is_looked_up(
    monkeypatch: pytest.MonkeyPatch, time: datetime, first_offset: int
) -> None:
    only = EqualTo(("topic",), "returns"), GreaterThanOrEqual(("timestamp",), time)
    assert planned(monkeypatch, *only) == [("returns", 0, first_offset, 9)]


def test_times_before_1970_are_not_looked_up_since_brokers_know_none(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    answer = ScriptedCatalog.offsets

    def noting(
        catalog: ScriptedCatalog,
        partitions: Collection[TopicIdPartition],
        at: Mapping[TopicIdPartition, int],
        isolation: Isolation,
    ) -> dict[TopicIdPartition, int | None]:
        asked.extend(at.values())
        return answer(catalog, partitions, at, isolation)

    monkeypatch.setattr(ScriptedCatalog, "offsets", noting)
    early = GreaterThan(("timestamp",), datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC))
    planned(monkeypatch, early)
    assert set(asked) == {EARLIEST, LATEST}


def test_an_end_that_a_partition_has_not_reached_is_an_error_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    given = '{"orders": {"0": 10, "1": 11}, "returns": {"0": -1}}'
    with pytest.raises(OptionError, match="endingOffsets: names 11 for orders-1, which ends at 10"):
        planned(monkeypatch, endingOffsets=given)
