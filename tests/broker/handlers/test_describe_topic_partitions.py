"""DescribeTopicPartitions: pages of partitions, as Apache Kafka 4.3.1 divides them."""

from pathlib import Path

import pytest
from kio.schema.describe_topic_partitions.v0.request import Cursor as RequestCursor
from kio.schema.describe_topic_partitions.v0.request import DescribeTopicPartitionsRequest, TopicRequest

from barnabas.broker.handlers.describe_topic_partitions import handle_describe_topic_partitions
from barnabas.coordinator.metadata.topic_decisions import NewTopic
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.primitive import TopicName, i32
from tests.broker.handlers.admin_broker import AdminBroker, admin_broker, ask

Cursor = tuple[str, int] | None
Page = tuple[list[tuple[str, list[int]]], Cursor]


def request(names: list[str], limit: int, cursor: Cursor = None) -> DescribeTopicPartitionsRequest:
    start = None
    if cursor is not None:
        start = RequestCursor(topic_name=TopicName(cursor[0]), partition_index=i32(cursor[1]))
    return DescribeTopicPartitionsRequest(
        topics=tuple(TopicRequest(name=TopicName(name)) for name in names),
        response_partition_limit=i32(limit),
        cursor=start,
    )


async def page(broker: AdminBroker, asked: DescribeTopicPartitionsRequest) -> Page:
    response = await ask(broker, handle_describe_topic_partitions, asked)
    cursor = response.next_cursor
    topics = [(topic.name, [one.partition_index for one in topic.partitions]) for topic in response.topics]
    return topics, None if cursor is None else (cursor.topic_name, cursor.partition_index)


PAGES: list[tuple[list[str], int, Cursor, Page]] = [
    (["b", "a"], 2000, None, ([("a", [0, 1, 2, 3]), ("b", [0])], None)),
    (["b", "a"], 3, None, ([("a", [0, 1, 2])], ("a", 3))),
    (["b", "a"], 3, ("a", 3), ([("a", [3]), ("b", [0])], None)),
    (["b", "a"], 4, None, ([("a", [0, 1, 2, 3])], ("b", 0))),
    (["a"], 3, ("a", 9), ([("a", [])], None)),
    (["a"], 0, None, ([("a", [0])], ("a", 1))),
    (["a"], -1, None, ([("a", [0])], ("a", 1))),
    (["a", "a"], 2, None, ([("a", [0, 1])], ("a", 2))),
    ([], 2, ("a", 2), ([("a", [2, 3])], ("b", 0))),
    ([], 2000, None, ([("a", [0, 1, 2, 3]), ("b", [0])], None)),
]
"""The topics, the limit and the cursor of a request, and the page; `a` has four partitions, `b` has one."""


@pytest.mark.parametrize(("names", "limit", "cursor", "expected"), PAGES)
async def test_a_page_begins_at_the_cursor_and_ends_at_the_limit(
    broker: AdminBroker, names: list[str], limit: int, cursor: Cursor, expected: Page
) -> None:
    await broker.create(NewTopic("b", 1), NewTopic("a", 4))
    assert await page(broker, request(names, limit, cursor)) == expected


async def test_the_brokers_setting_limits_a_page_as_well(tmp_path: Path) -> None:
    broker = await admin_broker(tmp_path, max__request__partition__size__limit="2")
    await broker.create(NewTopic("a", 4))
    assert await page(broker, request(["a"], 2000)) == ([("a", [0, 1])], ("a", 2))


@pytest.mark.parametrize("cursor", [("b", 0), ("a", -1)])
async def test_an_invalid_cursor_is_refused(broker: AdminBroker, cursor: Cursor) -> None:
    await broker.create(NewTopic("a", 1))
    response = await ask(broker, handle_describe_topic_partitions, request(["a"], 9, cursor))
    assert [(one.name, one.error_code) for one in response.topics] == [("a", ErrorCode.invalid_request)]


async def test_missing_topics_have_their_error(broker: AdminBroker) -> None:
    response = await ask(broker, handle_describe_topic_partitions, request(["x", "b d"], 9))
    assert [(one.name, one.error_code) for one in response.topics] == [
        ("b d", ErrorCode.invalid_topic_exception),
        ("x", ErrorCode.unknown_topic_or_partition),
    ]
