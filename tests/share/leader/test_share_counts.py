"""The topics whose counts a request adds to."""

from uuid import UUID

from barnabas.share.leader.share_counts import ShareCounts

ORDERS, GONE = UUID(int=1), UUID(int=2)


def test_a_topic_is_counted_with_all_together() -> None:
    counts = ShareCounts({ORDERS}.__contains__)
    for of_topic in counts.of_topics([ORDERS]):
        of_topic.fetches.add()
    assert counts.all_topics.fetches.value == counts.by_topic[ORDERS].fetches.value == 1


def test_a_topic_that_is_not_there_is_passed_over_and_leaves_nothing() -> None:
    counts = ShareCounts({ORDERS}.__contains__)
    assert counts.of_topics([GONE]) == []
    assert counts.of_topics([GONE, ORDERS]) == [counts.all_topics, counts.by_topic[ORDERS]]
    assert list(counts.by_topic) == [ORDERS]


def test_a_topic_that_was_deleted_is_not_counted_any_more() -> None:
    topic_ids = {ORDERS}
    counts = ShareCounts(topic_ids.__contains__)
    counts.of_topics([ORDERS])
    topic_ids.clear()
    counts.forget_topic(ORDERS)
    assert counts.of_topics([ORDERS]) == []
    assert not counts.by_topic
