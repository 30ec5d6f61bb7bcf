"""The decision, which is written before transactions are ended."""

from __future__ import annotations

import pytest

from barnabas.client.group.offsets import CommittedOffset
from barnabas.client.produce.transactions import Writer
from barnabas.client.topic_partition import TopicPartition
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.topic_sink.decision import Decision, Names, decode_decision, encode_decision

NAMES = Names("barnabas-query")
Offsets = dict[TopicPartition, CommittedOffset]


def decision(number: int, batch_id: int, task_count: int, topic: str = "orders") -> Decision:
    writers = [Writer(NAMES.task(task, 0), 10**15 + task, 7) for task in range(task_count)]
    return Decision(number, batch_id, topic, tuple(writers))


def committed(*decisions: Decision) -> Offsets:
    """The group's committed offsets after these decisions."""
    offsets: Offsets = {}
    for one in decisions:
        for index, offset in encode_decision(one, NAMES).items():
            offsets[TopicPartition(one.topic, index)] = offset
    return offsets


@pytest.mark.parametrize("task_count", [1, 2, 5_000])
def test_a_decision_is_read_as_it_was_written(task_count: int) -> None:
    original = decision(4, 9, task_count)
    offsets = committed(original)
    assert decode_decision(offsets, NAMES) == original
    assert all(len(one.metadata) <= 4_096 for one in offsets.values())


def test_parts_of_earlier_decisions_are_ignored() -> None:
    last = decision(2, 8, 1, topic="returns")
    assert decode_decision(committed(decision(0, 6, 900), decision(1, 7, 400), last), NAMES) == last


def test_a_decision_that_was_withdrawn_covers_nothing() -> None:
    withdrawn = decision(1, 7, 3)._replace(number=2, writers=(), is_withdrawn=True)
    found = decode_decision(committed(decision(1, 7, 3), withdrawn), NAMES)
    assert found == withdrawn
    assert not withdrawn.covers(7)
    assert decision(1, 7, 3).covers(7)


def test_a_group_that_has_committed_nothing_has_decided_nothing() -> None:
    assert decode_decision({}, NAMES) is None


@pytest.mark.parametrize(
    "metadata", ["", "something else", "2/0/0/1/0.0:1:1", "1/0/1/2/0.0:1:1", "1/0/0/1/0.0:x:1", "1/0/0/1/0.0"]
)
def test_offsets_that_no_sink_wrote_are_refused(metadata: str) -> None:
    with pytest.raises(PipelineError, match="barnabas-query has offsets that no sink wrote"):
        decode_decision({TopicPartition("orders", 0): CommittedOffset(3, metadata)}, NAMES)


def test_two_runs_of_a_query_write_under_ids_of_their_own() -> None:
    one, other = NAMES.task(3, 0, "0c1d2e3f"), NAMES.task(3, 0, "f0e1d2c3")
    assert one != other
    assert one.startswith(NAMES.tasks)
    original = Decision(0, 1, "orders", (Writer(one, 5, 0), Writer(other, 6, 0)))
    assert decode_decision(committed(original), NAMES) == original
