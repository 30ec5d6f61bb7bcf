"""Deletions that delete committed offsets too: of a group, of a topic."""

from __future__ import annotations

from uuid import UUID

from barnabas.protocol.classic_group_records import NO_TOPIC_ID
from tests.coordinator.classic.classic_bench import GROUP, TOPIC, Bench

COUNT = 2_500


def test_a_group_takes_its_offsets_along() -> None:
    bench = Bench()
    bench.start_commit(partitions=range(2_500)).result()
    bench.groups.delete_group(GROUP).result()
    bench.restart()
    assert bench.groups.list_groups() == []
    assert bench.offsets.fetch(GROUP, None) == []


def test_a_topic_takes_its_offsets_along_and_not_those_of_another_of_its_name() -> None:
    bench = Bench()
    old, new = UUID(int=1), UUID(int=2)
    bench.start_commit(1, topic_id=old).result()
    bench.start_commit(2, topic_id=new, partitions=(1,)).result()
    bench.groups.on_topics_deleted({TOPIC: old})
    assert (bench.committed(), bench.committed(partition=1)) == (None, 2)


def test_an_earlier_topic_that_is_forgotten_late_leaves_those_of_unknown_ids() -> None:
    bench = Bench()
    earlier = UUID(int=1)
    bench.start_commit(1, topic_id=earlier).result()
    bench.start_commit(2, topic_id=NO_TOPIC_ID, partitions=(1,)).result()
    bench.offsets.forget_topics({TOPIC: {earlier}})
    assert (bench.committed(), bench.committed(partition=1)) == (None, 2)


def test_many_go_with_their_group_all_or_none() -> None:
    bench = Bench()
    bench.start_commit(1, partitions=range(COUNT)).result()
    bench.groups.delete_group(GROUP).result()
    assert [len(batch.records) for batch in bench.log.batches] == [COUNT, COUNT + 1]
