"""The topics whose counts a request adds to, and the counts of a share-partition."""

from uuid import UUID

from barnabas.protocol.delivery_state import Cause, RecordState, StateRange
from barnabas.share.leader.share_counts import PartitionCounts, ShareCounts

ORDERS, GONE = UUID(int=1), UUID(int=2)


def test_a_topic_is_counted_with_all_together() -> None:
    counts = ShareCounts({ORDERS}.__contains__)
    for of_topic in counts.of_topics([ORDERS]):
        of_topic.fetches.add()
    assert counts.all_topics.fetches.value == counts.by_topic[ORDERS.int].fetches.value == 1


def test_a_topic_that_is_not_there_is_passed_over_and_leaves_nothing() -> None:
    counts = ShareCounts({ORDERS}.__contains__)
    assert counts.of_topics([GONE]) == []
    assert counts.of_topics([GONE, ORDERS]) == [counts.all_topics, counts.by_topic[ORDERS.int]]
    assert list(counts.by_topic) == [ORDERS.int]


def test_a_topic_that_was_deleted_is_not_counted_any_more() -> None:
    topic_ids = {ORDERS}
    counts = ShareCounts(topic_ids.__contains__)
    counts.of_topics([ORDERS])
    topic_ids.clear()
    counts.forget_topic(ORDERS)
    assert counts.of_topics([ORDERS]) == []
    assert not counts.by_topic


def test_only_later_deliveries_are_redeliveries() -> None:
    counts = PartitionCounts()
    counts.delivered([(0, 9, 1), (10, 12, 2), (20, 20, 5)], 0, 0, 0)
    counts.delivered([(10, 12, 3)], 0, 0, 0)
    assert counts.redelivered_records == 3 + 1 + 3


def test_fetches_within_one_millisecond_have_the_share_partition_all_the_time() -> None:
    counts = PartitionCounts()
    for began_ms, ended_ms in [(5, 5), (5, 5), (5, 6), (8, 9), (13, 13)]:
        counts.delivered([], 0, began_ms, ended_ms)
    percents = counts.fetch_percent
    assert (percents.count, percents.total) == (5, 100 + 100 + 100 + 100 // 3 + 100 // 4)


def test_records_without_an_acceptance_are_archived_but_not_gaps() -> None:
    counts = PartitionCounts()
    changes = [
        StateRange(0, 4, RecordState.ARCHIVED, 1, Cause.REJECT),
        StateRange(5, 5, RecordState.ARCHIVED, 5, Cause.DELIVERY_LIMIT),
        StateRange(6, 9, RecordState.ARCHIVED, 1, Cause.GAP),
        StateRange(10, 10, RecordState.ACKNOWLEDGED, 1, Cause.ACCEPT),
        StateRange(11, 11, RecordState.AVAILABLE, 1, Cause.RELEASE),
        StateRange(12, 12, RecordState.ARCHIVING, 1, Cause.REJECT),
    ]
    counts.note_archived(changes, lambda first_offset, last_offset: last_offset - first_offset + 1)
    assert counts.archived_records == 5 + 1
