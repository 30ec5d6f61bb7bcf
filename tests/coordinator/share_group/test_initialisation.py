"""Where a group starts to read: undecided for its first partitions, 0 for added ones; and the lists of
partitions.
"""

import pytest

from barnabas.coordinator.share_group.initialisation import (
    NewPartition,
    after_initialisation,
    plan_initialisation,
    without_topics,
)
from barnabas.coordinator.share_group.share_group import ShareGroup, StatePartitions, TopicPartitionSet
from tests.coordinator.share_group.simulated_coordinator import TOPIC, SimulatedCatalog

CATALOG = SimulatedCatalog()
TOPIC_ID = CATALOG.create(TOPIC, 3)


def _known(initialised: tuple[int, ...] = (), initialising: tuple[int, ...] = ()) -> StatePartitions:
    return StatePartitions(
        {TOPIC_ID: TopicPartitionSet(TOPIC, initialised)} if initialised else {},
        {TOPIC_ID: TopicPartitionSet(TOPIC, initialising)} if initialising else {},
    )


def _new(*partitions: int) -> list[NewPartition]:
    return [NewPartition(TOPIC_ID, TOPIC, partition) for partition in partitions]


@pytest.mark.parametrize(
    ("known", "planned"),
    [
        (_known(), [(0, False), (1, False), (2, False)]),
        (_known((0, 1, 2)), []),
        (_known((0,)), [(1, True), (2, True)]),
        (_known((0,), (1,)), [(1, False), (2, True)]),
        (_known((), (0, 1)), [(0, False), (1, False), (2, True)]),
    ],
)
def test_added_partitions_start_at_0_and_first_ones_undecided(
    known: StatePartitions, planned: list[tuple[int, bool]]
) -> None:
    group = ShareGroup("group")
    group.state_partitions = known
    plan = plan_initialisation(group, [TOPIC, "absent"], CATALOG, 0)
    assert [(new.partition, new.starts_at_zero) for new in plan.due] == planned
    assert plan.held_back == []


def test_a_partition_that_failed_is_planned_again_when_its_pause_is_over() -> None:
    group = ShareGroup("group")
    group.soft.retry_initialisation_at_ms = {(TOPIC_ID, 1): 100}
    assert plan_initialisation(group, [TOPIC], CATALOG, 99) == (_new(0, 2), _new(1))
    assert plan_initialisation(group, [TOPIC], CATALOG, 100) == (_new(0, 1, 2), [])


def test_failed_partitions_are_remembered_until_they_are_created() -> None:
    failed = after_initialisation(StatePartitions(), _new(0), _new(1, 2))
    assert failed == _known((0,), (1, 2))
    assert after_initialisation(failed, _new(2), []) == _known((0, 2), (1,))
    assert after_initialisation(failed, _new(1, 2), []) == _known((0, 1, 2))


def test_a_topic_is_being_deleted_until_none_of_its_partitions_waits() -> None:
    marks = {TOPIC_ID: TOPIC}
    deleting = StatePartitions(deleting=marks)
    assert after_initialisation(deleting, [], []) == deleting
    assert after_initialisation(deleting, [], _new(0)) == _known((), (0,))._replace(deleting=marks)
    partly = after_initialisation(deleting, _new(0), _new(1))
    assert partly == _known((0,), (1,))._replace(deleting=marks)
    assert after_initialisation(partly, _new(1), []) == _known((0, 1))


def test_topics_are_forgotten_in_every_list() -> None:
    known = _known((0,), (1,))._replace(deleting={TOPIC_ID: TOPIC})
    assert without_topics(known, {TOPIC_ID}) == StatePartitions({}, {}, {})
    assert without_topics(known, set()) == known
