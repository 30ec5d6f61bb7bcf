"""The admin APIs of share groups (wire sheet, section 8)."""

from typing import Any
from uuid import UUID

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from tests.conformance.conftest import Stage
from tests.conformance.harness import Lab, settle
from tests.conformance.share_member import ACCEPT, GROUP, ShareMember, fetched

OK = ErrorCode.none
UNKNOWN_GROUP = ErrorCode.group_id_not_found
NO_OPERATIONS = -(2**31)


async def emptied(stage: Stage) -> ShareMember:
    """The group read two of five records, accepted one, and has no members left."""
    await stage.produce(5)
    member = stage.member()
    await member.take()
    await member.accept(0, 0)
    await member.leave_session()
    await member.heartbeat(-1)
    return member


def start_at(start_offset: int, *, name: str = "t", partition: int = 0) -> dict[str, Any]:
    return {
        "topic_name": name,
        "partitions": [{"partition_index": partition, "start_offset": start_offset}],
    }


async def alter(lab: Lab, *topics: dict[str, Any], group_id: str = GROUP) -> Any:
    return await lab.admin.ask("alter_share_group_offsets", group_id=group_id, topics=topics)


def partition_errors(response: Any) -> list[tuple[str, int, int]]:
    return [
        (topic.topic_name, one.partition_index, one.error_code)
        for topic in response.responses
        for one in topic.partitions
    ]


class TestDescribe:
    async def test_a_group_is_described_with_its_members_and_their_partitions(self, stage: Stage) -> None:
        response = await stage.lab.admin.ask("share_group_describe", group_ids=[GROUP])
        (group,) = response.groups
        assert (group.error_code, group.group_id, group.group_state) == (OK, GROUP, "Stable")
        assert (group.group_epoch, group.assignment_epoch, group.assignor_name) == (2, 2, "simple")
        (member,) = group.members
        assert (member.member_id, member.member_epoch, member.client_id) == ("member-1", 2, "client")
        assert (member.client_host, member.rack_id) == ("/127.0.0.1", None)
        assert member.subscribed_topic_names == ("t",)
        (assigned,) = member.assignment.topic_partitions
        assert (assigned.topic_id, assigned.topic_name, assigned.partitions) == (
            stage.partition.topic_id,
            "t",
            (0,),
        )

    @pytest.mark.parametrize(
        ("group_id", "error"), [("", ErrorCode.invalid_group_id), ("nowhere", UNKNOWN_GROUP)]
    )
    async def test_a_group_that_does_not_exist_is_an_error(
        self, lab: Lab, group_id: str, error: ErrorCode
    ) -> None:
        response = await lab.admin.ask("share_group_describe", group_ids=[group_id])
        (group,) = response.groups
        assert (group.error_code, group.group_id, group.group_state) == (error, group_id, "")
        assert group.authorized_operations == NO_OPERATIONS

    async def test_authorized_operations_are_returned_on_request(self, stage: Stage) -> None:
        for asked in (False, True):
            response = await stage.lab.admin.ask(
                "share_group_describe", group_ids=[GROUP], include_authorized_operations=asked
            )
            assert (response.groups[0].authorized_operations != NO_OPERATIONS) is asked


class TestDescribeOffsets:
    async def describe(self, lab: Lab, group_id: str, topics: Any, version: int = 1) -> Any:
        response = await lab.admin.ask(
            "describe_share_group_offsets", version, groups=[{"group_id": group_id, "topics": topics}]
        )
        assert response.groups[0].error_code is OK
        return response.groups[0].topics

    async def test_all_topics_of_a_group_are_described(self, stage: Stage) -> None:
        await emptied(stage)
        (topic,) = await self.describe(stage.lab, GROUP, None)
        assert (topic.topic_name, topic.topic_id) == ("t", stage.partition.topic_id)
        (partition,) = topic.partitions
        assert (partition.start_offset, partition.lag, partition.error_code) == (1, 4, OK)
        assert partition.leader_epoch == 0

    async def test_version_0_returns_no_lag(self, stage: Stage) -> None:
        await emptied(stage)
        (topic,) = await self.describe(stage.lab, GROUP, None, version=0)
        assert topic.partitions[0].start_offset == 1
        assert not hasattr(topic.partitions[0], "lag")

    async def test_an_empty_list_requests_nothing(self, stage: Stage) -> None:
        assert await self.describe(stage.lab, GROUP, []) == ()

    async def test_an_unknown_group_has_no_topics(self, stage: Stage) -> None:
        assert await self.describe(stage.lab, "nowhere", None) == ()

    @pytest.mark.parametrize(
        ("group_id", "name", "partition", "known"),
        [("nowhere", "t", 0, True), (GROUP, "t", 9, True), (GROUP, "nowhere", 0, False)],
    )
    async def test_a_partition_that_was_never_read_is_at_minus_1_without_an_error(
        self, stage: Stage, group_id: str, name: str, partition: int, known: bool
    ) -> None:
        asked = [{"topic_name": name, "partitions": [partition]}]
        (topic,) = await self.describe(stage.lab, group_id, asked)
        assert topic.topic_id == (stage.partition.topic_id if known else None)
        (one,) = topic.partitions
        assert (one.start_offset, one.lag, one.error_code) == (-1, -1, OK)

    async def test_several_groups_may_be_in_one_request(self, stage: Stage) -> None:
        groups = [{"group_id": name, "topics": None} for name in (GROUP, "nowhere")]
        response = await stage.lab.admin.ask("describe_share_group_offsets", groups=groups)
        assert [group.group_id for group in response.groups] == [GROUP, "nowhere"]


class TestAlterOffsets:
    async def test_a_group_without_members_starts_at_the_new_offset(self, stage: Stage) -> None:
        await emptied(stage)
        response = await alter(stage.lab, start_at(3))
        assert (response.error_code, partition_errors(response)) == (OK, [("t", 0, OK)])
        assert response.responses[0].topic_id == stage.partition.topic_id
        assert await stage.offsets() == (3, 2)
        assert await stage.member().take() == [(3, 4, 1)]

    async def test_back_to_the_beginning_delivers_everything_again_as_new(self, stage: Stage) -> None:
        await emptied(stage)
        await alter(stage.lab, start_at(0))
        assert await stage.member().take() == [(0, 4, 1)]

    @pytest.mark.parametrize(
        ("group_id", "error"), [("", ErrorCode.invalid_group_id), (GROUP, ErrorCode.non_empty_group)]
    )
    async def test_a_group_without_a_name_or_with_members_is_refused(
        self, stage: Stage, group_id: str, error: ErrorCode
    ) -> None:
        response = await alter(stage.lab, start_at(0), group_id=group_id)
        assert (response.error_code, response.responses) == (error, ())

    async def test_an_unknown_group_is_created(self, stage: Stage) -> None:
        await stage.produce(5)
        response = await alter(stage.lab, start_at(2), group_id="new")
        assert partition_errors(response) == [("t", 0, OK)]
        described = await stage.lab.admin.ask("share_group_describe", group_ids=["new"])
        (group,) = described.groups
        assert (group.group_state, group.group_epoch, group.members) == ("Empty", 1, ())
        member = ShareMember(stage.lab.client(), [stage.partition], group_id="new")
        await member.join("t")
        assert await member.take() == [(2, 4, 1)]

    async def test_unknown_topics_and_partitions_are_errors_of_their_own(self, stage: Stage) -> None:
        await emptied(stage)
        response = await alter(stage.lab, start_at(0), start_at(0, partition=9), start_at(0, name="u"))
        unknown = ErrorCode.unknown_topic_or_partition
        assert partition_errors(response) == [("t", 0, OK), ("t", 9, unknown), ("u", 0, unknown)]
        assert response.responses[2].topic_id is None

    async def test_beyond_the_end_the_lag_is_negative(self, stage: Stage) -> None:
        await emptied(stage)
        await alter(stage.lab, start_at(100_000))
        start, lag = await stage.offsets()
        assert start == 100_000
        assert lag <= 0

    async def test_an_offset_below_the_beginning_means_the_beginning(self, stage: Stage) -> None:
        await emptied(stage)
        await alter(stage.lab, start_at(-5))
        assert await stage.offsets() == (0, 5)

    async def test_minus_1_leaves_the_start_to_the_reset_policy_again(self, stage: Stage) -> None:
        await emptied(stage)
        assert partition_errors(await alter(stage.lab, start_at(-1))) == [("t", 0, OK)]
        assert await stage.offsets() == (-1, -1)
        await stage.lab.configure_group(GROUP, auto_offset_reset="earliest")
        assert await stage.member().take() == [(0, 4, 1)]

    async def test_a_fetch_that_waits_reads_on_from_there(self, stage: Stage) -> None:
        """A client that is no longer a member may still fetch."""
        await emptied(stage)
        late = stage.member(2)
        assert await late.take() == [(1, 4, 2)]
        await late.acknowledge([(1, 4, ACCEPT)])
        pending = late.start_fetch(max_wait=1000)
        await settle()
        await alter(stage.lab, start_at(2))
        await settle()
        assert fetched(pending.response()).acquired == [(2, 4, 1)]
        assert (await late.acknowledge([(2, 2, ACCEPT)])).errors == [OK]
        await stage.lab.crash()
        assert await stage.offsets() == (3, 2)
        assert await stage.member().take() == [(3, 4, 1)]


class TestDeleteOffsets:
    async def delete(self, lab: Lab, *names: str, group_id: str = GROUP) -> Any:
        topics = [{"topic_name": name} for name in names]
        return await lab.admin.ask("delete_share_group_offsets", group_id=group_id, topics=topics)

    async def test_makes_the_group_start_again(self, stage: Stage) -> None:
        await emptied(stage)
        response = await self.delete(stage.lab, "t")
        (topic,) = response.responses
        assert (response.error_code, topic.error_code) == (OK, OK)
        assert topic.topic_id == stage.partition.topic_id
        assert await stage.offsets() == (-1, -1)
        await stage.member().join("t")
        assert await stage.member(2).take() == [(0, 4, 1)]

    @pytest.mark.parametrize(
        ("group_id", "error"),
        [
            ("", ErrorCode.invalid_group_id),
            ("nowhere", UNKNOWN_GROUP),
            (GROUP, ErrorCode.non_empty_group),
        ],
    )
    async def test_a_group_that_is_missing_or_has_members_is_refused(
        self, stage: Stage, group_id: str, error: ErrorCode
    ) -> None:
        response = await self.delete(stage.lab, "t", group_id=group_id)
        assert (response.error_code, response.responses) == (error, ())

    async def test_topics_that_are_unknown_or_have_no_offsets_are_errors(self, stage: Stage) -> None:
        await stage.lab.create_topic("u")
        await emptied(stage)
        response = await self.delete(stage.lab, "t", "u", "nowhere")
        unknown = ErrorCode.unknown_topic_or_partition
        assert {topic.topic_name: topic.error_code for topic in response.responses} == {
            "t": OK,
            "u": unknown,
            "nowhere": unknown,
        }


class TestDeleteGroups:
    async def delete(self, lab: Lab, *group_ids: str) -> dict[str, ErrorCode]:
        response = await lab.admin.ask("delete_groups", groups_names=group_ids)
        return {result.group_id: result.error_code for result in response.results}

    async def test_each_group_has_its_own_error(self, stage: Stage) -> None:
        await alter(stage.lab, start_at(0), group_id="empty")
        assert await self.delete(stage.lab, GROUP, "empty", "nowhere", "") == {
            GROUP: ErrorCode.non_empty_group,
            "empty": OK,
            "nowhere": UNKNOWN_GROUP,
            "": UNKNOWN_GROUP,
        }

    async def test_takes_the_state_along(self, stage: Stage) -> None:
        await emptied(stage)
        assert await self.delete(stage.lab, GROUP) == {GROUP: OK}
        assert await stage.offsets() == (-1, -1)
        response = await stage.lab.admin.ask("share_group_describe", group_ids=[GROUP])
        assert response.groups[0].error_code is UNKNOWN_GROUP
        again = await stage.member().join("t")
        assert again.member_epoch == 2
        assert await stage.member().take() == [(0, 4, 1)]

    async def test_gives_the_groups_sessions_no_records_and_no_error(self, stage: Stage) -> None:
        """Also a fetch that waits; only a new session gets an error."""
        await emptied(stage)
        reading, beginning, later = stage.member(2), stage.member(3), stage.member(4)
        await reading.take()
        waiting = [reading.start_fetch(max_wait=1000), beginning.start_fetch(max_wait=1000)]
        await settle()
        await self.delete(stage.lab, GROUP)
        await stage.lab.advance(999)
        assert not any(pending.done for pending in waiting)
        await stage.lab.advance(1)
        assert [fetched(pending.response()).errors for pending in waiting] == [[], [OK]]
        assert (await reading.fetch()).errors == []
        assert (await later.fetch()).errors == [ErrorCode.unknown_server_error]


class TestListGroups:
    @pytest.mark.parametrize(
        ("filters", "names"),
        [
            ({}, ["empty", GROUP]),
            ({"types_filter": ["share"]}, ["empty", GROUP]),
            ({"types_filter": ["SHARE"]}, ["empty", GROUP]),
            ({"types_filter": ["classic"]}, []),
            ({"types_filter": ["nonsense"]}, []),
            ({"states_filter": ["Stable"]}, [GROUP]),
            ({"states_filter": ["eMpTy"]}, ["empty"]),
            ({"states_filter": ["Dead"]}, []),
            ({"states_filter": ["Stable"], "types_filter": ["consumer"]}, []),
        ],
    )
    async def test_only_groups_that_pass_the_filters_are_listed(
        self, stage: Stage, filters: dict[str, Any], names: list[str]
    ) -> None:
        await alter(stage.lab, start_at(0), group_id="empty")
        response = await stage.lab.admin.ask("list_groups", **filters)
        assert sorted(group.group_id for group in response.groups) == names

    async def test_a_listed_share_group_has_its_type_and_its_state(self, stage: Stage) -> None:
        (group,) = (await stage.lab.admin.ask("list_groups")).groups
        assert (group.protocol_type, group.group_type, group.group_state) == ("share", "share", "Stable")

    @pytest.mark.parametrize("version", range(6))
    async def test_every_version_is_answered(self, stage: Stage, version: int) -> None:
        response = await stage.lab.admin.ask("list_groups", version)
        assert [group.group_id for group in response.groups] == [GROUP]


class TestGroupConfigs:
    async def alter(self, lab: Lab, group_id: str, name: str, value: str, operation: int = 0) -> ErrorCode:
        setting = {"name": name, "config_operation": operation, "value": value}
        resource = {"resource_type": 32, "resource_name": group_id, "configs": [setting]}
        response = await lab.admin.ask("incremental_alter_configs", resources=[resource])
        code: ErrorCode = response.responses[0].error_code
        return code

    @pytest.mark.parametrize(
        ("group_id", "name", "value", "operation", "error"),
        [
            ("new", "share.auto.offset.reset", "earliest", 0, OK),
            ("new", "share.auto.offset.reset", "none", 0, ErrorCode.invalid_config),
            ("new", "share.nonsense", "1", 0, ErrorCode.invalid_config),
            ("new", "share.record.lock.duration.ms", "1", 0, ErrorCode.invalid_config),
            ("new", "share.auto.offset.reset", "earliest", 2, ErrorCode.invalid_config),
            ("", "share.auto.offset.reset", "earliest", 0, ErrorCode.invalid_request),
        ],
    )
    async def test_only_valid_changes_are_accepted(
        self, lab: Lab, group_id: str, name: str, value: str, operation: int, error: ErrorCode
    ) -> None:
        assert await self.alter(lab, group_id, name, value, operation) is error


async def test_partitions_of_unknown_topics_have_no_id(lab: Lab) -> None:
    response = await alter(lab, start_at(0, name="nowhere"), group_id="new")
    assert partition_errors(response) == [("nowhere", 0, ErrorCode.unknown_topic_or_partition)]
    assert await lab.offsets("new", TopicIdPartition(await lab.create_topic(), 0)) == (-1, -1)
    assert UUID(int=0) not in lab.broker.metadata.image.topics_by_id
