"""Groups as administrators see them."""

import pytest

from barnabas.coordinator.group.description import DescribedTopic, ListedGroup
from barnabas.coordinator.share_group.description import DescribedMember
from barnabas.protocol.errors import ApiError, ErrorCode
from tests.coordinator.share_group.simulated_coordinator import GROUP, TOPIC, Simulation


def test_a_group_is_described_with_its_members_and_their_partitions() -> None:
    simulation = Simulation()
    topic_id = simulation.catalog.create(TOPIC, 2)
    simulation.submit("a", 0, ["unknown", TOPIC], rack_id="r1").result()
    described = simulation.coordinator.describe(GROUP)
    assert described[:5] == (GROUP, "Stable", 2, 2, "simple")
    assert described.members == [
        DescribedMember(
            "a",
            "r1",
            2,
            "client",
            "/127.0.0.1",
            [TOPIC, "unknown"],
            [DescribedTopic(topic_id, TOPIC, (0, 1))],
        )
    ]


def test_topics_that_are_gone_are_left_out() -> None:
    simulation = Simulation()
    simulation.catalog.create(TOPIC)
    simulation.join("a")
    simulation.catalog.delete(TOPIC)
    assert simulation.coordinator.describe(GROUP).members[0].assignment == []


def test_a_group_without_members_is_empty() -> None:
    simulation = Simulation()
    simulation.join("a")
    simulation.leave("a")
    assert simulation.coordinator.describe(GROUP)[:4] == (GROUP, "Empty", 3, 3)


@pytest.mark.parametrize(
    ("group_id", "code"),
    [
        ("", ErrorCode.invalid_group_id),
        ("ä" * 16_384, ErrorCode.invalid_group_id),
        ("absent", ErrorCode.group_id_not_found),
        ("billing", ErrorCode.group_id_not_found),
    ],
)
def test_other_groups_cannot_be_described(group_id: str, code: ErrorCode) -> None:
    simulation = Simulation()
    simulation.occupy("billing")
    with pytest.raises(ApiError) as refused:
        simulation.coordinator.describe(group_id)
    assert refused.value.code is code
    assert refused.value.message


def test_nothing_is_described_before_the_groups_are_loaded() -> None:
    with pytest.raises(ApiError) as refused:
        Simulation(loaded=False).coordinator.describe(GROUP)
    assert refused.value.code is ErrorCode.coordinator_load_in_progress


@pytest.mark.parametrize(
    ("states", "types", "listed"),
    [
        ([], [], ["live", "left"]),
        (["stable"], [], ["live"]),
        (["EMPTY", " Stable "], ["Share"], ["live", "left"]),
        (["Dead"], [], []),
        (["rebalancing"], [], []),
        ([], ["consumer"], []),
        ([], ["consumer", "SHARE"], ["live", "left"]),
        ([], ["nonsense"], []),
    ],
)
def test_lists_are_filtered_by_state_and_type_without_regard_to_case(
    states: list[str], types: list[str], listed: list[str]
) -> None:
    simulation = Simulation()
    simulation.join("a", group_id="live")
    simulation.join("a", group_id="left")
    simulation.leave("a", group_id="left")
    groups = simulation.groups.list_groups(states, types)
    assert [group.group_id for group in groups] == listed
    assert all(group[1::2] == ("share", "share") for group in groups)


def test_a_listed_group_names_its_type_and_state() -> None:
    simulation = Simulation()
    simulation.join("a")
    assert simulation.coordinator.list_groups() == [ListedGroup(GROUP, "share", "Stable", "share", 1)]
