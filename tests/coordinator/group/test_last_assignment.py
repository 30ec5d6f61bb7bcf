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
    ("assigned_at_ms", "is_due"),
    [
        pytest.param(None, True, id="nothing was assigned yet"),
        pytest.param(NOW_MS - INTERVAL_MS, True, id="the interval is over"),
        pytest.param(NOW_MS - INTERVAL_MS + 1, False, id="the interval is not over"),
        pytest.param(NOW_MS, False, id="just now"),
        pytest.param(NOW_MS + 1, False, id="assigned while the heartbeat waited"),
    ],
)
def test_an_assignment_is_due_an_interval_after_the_last_one(
    assigned_at_ms: int | None, is_due: bool
) -> None:
    assert assignment_is_due(assigned_at_ms, INTERVAL_MS, NOW_MS) is is_due


def test_an_interval_of_0_holds_up_no_assignment() -> None:
    assert assignment_is_due(NOW_MS + 1, 0, NOW_MS)
