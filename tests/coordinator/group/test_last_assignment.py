"""The last target assignment of a group: its partitions, and the time of the next one."""

from __future__ import annotations

from uuid import UUID

import pytest

from barnabas.coordinator.group.last_assignment import assignment_is_due, assignment_of
from barnabas.protocol.topic_partitions import TopicPartitions

INTERVAL_MS = 1_000
NOW_MS = 50_000


def test_an_assignment_out_of_a_record_is_ascending_and_has_no_empty_topics() -> None:
    one = TopicPartitions(topic_id=UUID(int=1), partitions=(1, 0))
    empty = TopicPartitions(topic_id=UUID(int=9), partitions=())
    assert assignment_of([one, empty]) == {UUID(int=1): (0, 1)}


@pytest.mark.parametrize(
    ("last_ms", "is_due"),
    [
        pytest.param(0, True, id="nothing was assigned yet"),
        pytest.param(NOW_MS - INTERVAL_MS, True, id="the interval is over"),
        pytest.param(NOW_MS - INTERVAL_MS + 1, False, id="the interval is not over"),
        pytest.param(NOW_MS, False, id="just now"),
        pytest.param(NOW_MS + 1, True, id="the clock was set back"),
    ],
)
def test_an_assignment_is_due_an_interval_after_the_last_one(last_ms: int, is_due: bool) -> None:
    assert assignment_is_due(last_ms, INTERVAL_MS, NOW_MS) is is_due
