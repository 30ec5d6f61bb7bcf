"""ShareGroupHeartbeat (wire sheet, section 3).

One difference from Apache Kafka is intended: the heartbeat that joins also initialises the partitions of a
new group, so the first answer already has them, with epoch 2.
"""

from typing import Any

import pytest

from barnabas.broker.handlers.common.subscribed_names import MISSING_NAMES_MAX
from barnabas.protocol.errors import ErrorCode
from tests.conformance.conftest import Stage
from tests.conformance.harness import Lab, open_lab
from tests.conformance.share_member import GROUP, ShareMember


def assigned(response: Any) -> dict[str, list[int]] | None:
    """Partitions by topic id, or None for no assignment."""
    if response.assignment is None:
        return None
    return {str(topic.topic_id): list(topic.partitions) for topic in response.assignment.topic_partitions}


def member(lab: Lab, number: int = 1, group_id: str = GROUP) -> ShareMember:
    return ShareMember(lab.client(), group_id=group_id, member_id=f"member-{number}")


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"member_id": ""}, id="no member id"),
        pytest.param({"member_id": "m" * 37}, id="a member id that is too long"),
        pytest.param({"group_id": ""}, id="no group id"),
        pytest.param({"rack_id": ""}, id="an empty rack"),
        pytest.param({"topics": None}, id="a join without topics"),
        pytest.param({"topics": []}, id="a join with an empty list of topics"),
        pytest.param({"member_epoch": -2}, id="no static members"),
        pytest.param({"member_epoch": -3}, id="a senseless epoch"),
    ],
)
async def test_a_request_that_no_group_could_accept_is_an_invalid_request(
    lab: Lab, fields: dict[str, Any]
) -> None:
    asked: dict[str, Any] = {"member_epoch": 0, "topics": ["t"], **fields}
    response = await member(lab).heartbeat(**asked)
    assert response.error_code is ErrorCode.invalid_request
    assert (response.member_id, response.member_epoch, response.assignment) == (None, 0, None)
    assert response.heartbeat_interval.total_seconds() == 0
    groups = await lab.admin.ask("list_groups")
    assert groups.groups == ()


async def test_a_member_subscribes_to_a_bounded_number_of_topics_more_than_there_are(lab: Lab) -> None:
    names = [f"topic-{number:04}" for number in range(MISSING_NAMES_MAX + 2)]
    await lab.create_topic("t")
    refused = await member(lab).heartbeat(0, names)
    assert refused.error_code is ErrorCode.invalid_request
    assert refused.error_message == "The subscription names 5002 topics; the present limit is 5001."
    taken = await member(lab).heartbeat(0, names[:-1])
    assert taken.error_code is ErrorCode.none


async def test_the_longest_member_id_is_accepted(lab: Lab) -> None:
    response = await member(lab).heartbeat(0, ["t"], member_id="m" * 36)
    assert response.error_code is ErrorCode.none


async def test_a_join_is_answered_with_epoch_2_the_interval_and_the_assignment(lab: Lab) -> None:
    topic_id = await lab.create_topic("t", 2)
    response = await member(lab).heartbeat(0, ["t"])
    assert response.member_id == "member-1"
    assert response.member_epoch == 2
    assert response.heartbeat_interval.total_seconds() == 5
    assert assigned(response) == {str(topic_id): [0, 1]}


async def test_the_groups_own_interval_is_returned(lab: Lab) -> None:
    await lab.configure_group(GROUP, heartbeat_interval_ms=7000)
    response = await member(lab).heartbeat(0, ["t"])
    assert response.heartbeat_interval.total_seconds() == 7


async def test_unknown_topics_are_accepted_with_an_empty_assignment(lab: Lab) -> None:
    response = await member(lab).heartbeat(0, ["nowhere"])
    assert response.error_code is ErrorCode.none
    assert assigned(response) == {}


@pytest.mark.parametrize(
    ("member_epoch", "error"),
    [
        (0, ErrorCode.none),
        (2, ErrorCode.none),
        (1, ErrorCode.fenced_member_epoch),
        (3, ErrorCode.fenced_member_epoch),
        (2**31 - 1, ErrorCode.fenced_member_epoch),
    ],
)
async def test_only_epoch_0_and_the_current_epoch_are_accepted(
    stage: Stage, member_epoch: int, error: ErrorCode
) -> None:
    topics = ["t"] if member_epoch == 0 else None
    response = await stage.member().heartbeat(member_epoch, topics)
    assert response.error_code is error
    assert response.member_epoch == (2 if error is ErrorCode.none else 0)


async def test_the_previous_epoch_is_accepted_since_the_answer_may_have_been_lost(stage: Stage) -> None:
    await stage.lab.create_topic("u")
    await stage.lab.advance(1000)
    first = await stage.member().heartbeat(2, ["t", "u"])
    assert first.member_epoch == 3
    again = await stage.member().heartbeat(2)
    assert (again.error_code, again.member_epoch) == (ErrorCode.none, 3)
    await stage.member(2).heartbeat(0, ["t"])
    await stage.lab.advance(1000)
    assert (await stage.member().heartbeat(3)).member_epoch == 4
    fenced = await stage.member().heartbeat(2)
    assert fenced.error_code is ErrorCode.fenced_member_epoch


async def test_an_unknown_member_with_an_epoch_above_0_is_refused(stage: Stage) -> None:
    assert (await stage.member(2).heartbeat(1)).error_code is ErrorCode.unknown_member_id
    nowhere = member(stage.lab, group_id="nowhere")
    assert (await nowhere.heartbeat(1)).error_code is ErrorCode.group_id_not_found


async def test_the_assignment_is_returned_only_on_request_or_after_a_change(stage: Stage) -> None:
    one = stage.member()
    assert assigned(await one.heartbeat(2)) is None
    told = assigned(await one.heartbeat(2, ["t"]))
    assert told == {str(stage.partition.topic_id): [0]}
    assert assigned(await one.heartbeat(0, ["t"])) == told


async def test_an_empty_list_of_topics_is_a_change_and_gets_an_empty_assignment(stage: Stage) -> None:
    await stage.lab.advance(1000)
    response = await stage.member().heartbeat(2, [])
    assert response.error_code is ErrorCode.none
    assert assigned(response) == {}


async def test_a_leaving_member_gets_epoch_minus_1_and_nothing_else(stage: Stage) -> None:
    response = await stage.member().heartbeat(-1)
    assert response.error_code is ErrorCode.none
    assert (response.member_id, response.member_epoch) == ("member-1", -1)
    assert response.heartbeat_interval.total_seconds() == 0
    assert response.assignment is None


async def test_leaving_bumps_the_group_epoch_and_leaves_an_empty_group(stage: Stage) -> None:
    await stage.member().heartbeat(-1)
    described = await stage.lab.admin.ask("share_group_describe", group_ids=[GROUP])
    assert (described.groups[0].group_state, described.groups[0].group_epoch) == ("Empty", 3)


async def test_only_a_member_can_leave_a_group(stage: Stage) -> None:
    assert (await stage.member(2).heartbeat(-1)).error_code is ErrorCode.unknown_member_id
    nowhere = member(stage.lab, group_id="nowhere")
    assert (await nowhere.heartbeat(-1)).error_code is ErrorCode.group_id_not_found


async def test_joins_within_the_assignment_interval_share_one_assignment(lab: Lab) -> None:
    await lab.create_topic("t", 4)
    first = await member(lab, 1).join("t")
    second, third = [await member(lab, number).join("t") for number in (2, 3)]
    assert [one.member_epoch for one in (first, second, third)] == [2, 2, 2]
    assert assigned(second) == {}
    await lab.advance(1000)
    answers = [await member(lab, number).heartbeat(2) for number in (1, 2, 3)]
    assert {one.member_epoch for one in answers} == {4}
    partitions = [(assigned(one) or {}).popitem()[1] for one in answers]
    assert sorted(index for assignment in partitions for index in assignment) == [0, 1, 2, 3]


async def test_a_member_that_joins_after_the_interval_gets_its_partitions_at_once(lab: Lab) -> None:
    topic_id = await lab.create_topic("t", 2)
    await member(lab, 1).join("t")
    await lab.advance(1000)
    response = await member(lab, 2).join("t")
    assert response.member_epoch == 3
    assert len((assigned(response) or {})[str(topic_id)]) == 1


async def test_more_members_than_partitions_share_them(lab: Lab) -> None:
    topic_id = await lab.create_topic("t", 1)
    await lab.configure_group(GROUP, assignment_interval_ms=0)
    answers = [await member(lab, number).join("t") for number in (1, 2, 3)]
    assert [assigned(one) for one in answers] == [{str(topic_id): [0]}] * 3


async def test_added_partitions_reach_the_members(stage: Stage) -> None:
    grown = await stage.lab.admin.ask(
        "create_partitions", topics=[{"name": "t", "count": 3, "assignments": None}]
    )
    assert grown.results[0].error_code is ErrorCode.none
    await stage.lab.advance(1000)
    response = await stage.member().heartbeat(2)
    assert response.member_epoch == 3
    assert assigned(response) == {str(stage.partition.topic_id): [0, 1, 2]}


async def test_a_deleted_topic_leaves_the_assignment(stage: Stage) -> None:
    await stage.lab.delete_topic("t")
    await stage.lab.advance(1000)
    assert assigned(await stage.member().heartbeat(2)) == {}


async def test_a_topic_created_after_its_subscription_is_assigned(lab: Lab) -> None:
    await member(lab).join("later")
    topic_id = await lab.create_topic("later")
    await lab.advance(1000)
    response = await member(lab).heartbeat(2)
    assert assigned(response) == {str(topic_id): [0]}


async def test_a_full_group_refuses_new_members_but_accepts_its_own_again() -> None:
    async with open_lab(group__share__max__size="1") as lab:
        assert (await member(lab, 1).heartbeat(0, ["t"])).error_code is ErrorCode.none
        assert (await member(lab, 2).heartbeat(0, ["t"])).error_code is ErrorCode.group_max_size_reached
        assert (await member(lab, 1).heartbeat(0, ["t"])).error_code is ErrorCode.none


async def test_a_silent_member_is_out_after_its_session_and_a_heartbeat_renews_that(stage: Stage) -> None:
    await stage.lab.advance(44_000)
    assert (await stage.member().heartbeat(2)).error_code is ErrorCode.none
    await stage.lab.advance(44_999)
    assert (await stage.lab.admin.ask("share_group_describe", group_ids=[GROUP])).groups[0].members
    await stage.lab.advance(1)
    described = (await stage.lab.admin.ask("share_group_describe", group_ids=[GROUP])).groups[0]
    assert (described.members, described.group_state, described.group_epoch) == ((), "Empty", 3)
    assert (await stage.member().heartbeat(2)).error_code is ErrorCode.unknown_member_id


async def test_the_groups_own_session_timeout_counts(lab: Lab) -> None:
    await lab.configure_group(GROUP, session_timeout_ms=60_000)
    await member(lab).join("t")
    await lab.advance(59_999)
    assert (await member(lab).heartbeat(2)).error_code is ErrorCode.none


async def test_leaving_and_expiry_touch_neither_the_share_session_nor_its_records(stage: Stage) -> None:
    await stage.produce(2)
    one = stage.member()
    assert await one.take() == [(0, 1, 1)]
    await one.heartbeat(-1)
    await one.accept(0, 0)
    assert await stage.member(2).take() == []


async def test_members_and_epochs_survive_a_restart_and_sessions_start_again(stage: Stage) -> None:
    lab = stage.lab
    await lab.advance(40_000)
    await lab.restart()
    await lab.advance(44_000)
    response = await stage.member().heartbeat(2)
    assert (response.error_code, response.member_epoch) == (ErrorCode.none, 2)
    await lab.advance(45_000)
    assert (await stage.member().heartbeat(2)).error_code is ErrorCode.unknown_member_id
