"""Consumer groups over the protocol, in every version, compared with the answers of Apache Kafka 4.3.1.

The rules themselves are tested beside the coordinator; these tests cover the path between the rules and a
client.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from barnabas.broker.handlers.common.subscribed_names import MISSING_NAMES_MAX
from barnabas.protocol.errors import ErrorCode
from tests.conformance.harness import Client, Lab, open_lab

GROUP = "billing"
OK = ErrorCode.none
NO_INTERVAL = {"group.consumer.assignment.interval.ms": "0"}


async def beat(client: Client, member_id: str, epoch: int, version: int = 1, **changed: Any) -> Any:
    asked = {"group_id": GROUP, "member_id": member_id, "member_epoch": epoch, "topic_partitions": None}
    return await client.ask("consumer_group_heartbeat", version, **(asked | changed))


async def join(client: Client, member_id: str = "a", version: int = 1, **changed: Any) -> Any:
    asked: dict[str, Any] = {
        "rebalance_timeout": 60_000,
        "subscribed_topic_names": ["t"],
        "topic_partitions": [],
    }
    return await beat(client, member_id, 0, version, **(asked | changed))


def partitions(response: Any) -> dict[UUID, list[int]]:
    return {one.topic_id: list(one.partitions) for one in response.assignment.topic_partitions}


async def describe(lab: Lab, version: int = 1, *, operations: bool = False) -> Any:
    response = await lab.client().ask(
        "consumer_group_describe", version, group_ids=[GROUP], include_authorized_operations=operations
    )
    return response.groups[0]


@pytest.mark.parametrize("version", [0, 1])
async def test_a_member_joins_in_every_version(version: int) -> None:
    async with open_lab() as lab:
        topic_id = await lab.create_topic("t", 3)
        joined = await join(lab.client(), version=version)
        assert (joined.error_code, joined.member_id, joined.member_epoch) == (OK, "a", 2)
        assert joined.heartbeat_interval.total_seconds() == 5
        assert partitions(joined) == {topic_id: [0, 1, 2]}
        steady = await beat(lab.client(), "a", 2, version)
        assert (steady.error_code, steady.assignment) == (OK, None)
        left = await beat(lab.client(), "a", -1, version)
        assert (left.error_code, left.member_epoch) == (OK, -1)


async def test_version_0_gives_a_member_its_id() -> None:
    async with open_lab() as lab:
        assert len((await join(lab.client(), "", 0)).member_id) == 22
        assert (await join(lab.client(), "")).error_code is ErrorCode.invalid_request


async def test_a_member_subscribes_to_a_bounded_number_of_topics_more_than_there_are() -> None:
    names = [f"topic-{number:04}" for number in range(MISSING_NAMES_MAX + 1)]
    async with open_lab() as lab:
        refused = await join(lab.client(), subscribed_topic_names=names)
        assert refused.error_code is ErrorCode.invalid_request
        assert refused.error_message == "The subscription names 5001 topics; the present limit is 5000."
        assert (await join(lab.client(), subscribed_topic_names=names[1:])).error_code is OK


@pytest.mark.parametrize("version", [0, 1])
async def test_a_group_is_described_in_every_version(version: int) -> None:
    async with open_lab(**NO_INTERVAL) as lab:
        topic_id = await lab.create_topic("t", 2)
        await join(lab.client(), instance_id="i", rack_id="r", server_assignor="range")
        group = await describe(lab, version, operations=True)
        assert (group.error_code, group.group_state, group.assignor_name) == (OK, "Stable", "range")
        assert (group.group_epoch, group.assignment_epoch, group.authorized_operations) == (2, 2, 3400)
        (member,) = group.members
        assert (member.member_id, member.instance_id, member.rack_id) == ("a", "i", "r")
        assert (list(member.subscribed_topic_names), member.subscribed_topic_regex) == (["t"], "")
        for assignment in (member.assignment, member.target_assignment):
            (topic,) = assignment.topic_partitions
            assert (topic.topic_id, topic.topic_name, list(topic.partitions)) == (topic_id, "t", [0, 1])
        if version:
            assert member.member_type == 1


async def test_a_group_that_is_not_there_has_an_error_of_its_own() -> None:
    async with open_lab() as lab:
        response = await lab.client().ask(
            "consumer_group_describe", group_ids=[GROUP, ""], include_authorized_operations=False
        )
        codes = [one.error_code for one in response.groups]
        assert codes == [ErrorCode.group_id_not_found, ErrorCode.invalid_group_id]


async def test_a_group_is_listed_with_its_type_and_deleted_when_it_is_empty() -> None:
    async with open_lab() as lab:
        client = lab.client()
        await join(client)
        listed = await client.ask("list_groups", states_filter=[], types_filter=["Consumer"])
        (group,) = listed.groups
        assert (group.group_id, group.protocol_type, group.group_type) == (GROUP, "consumer", "consumer")
        deleted = await client.ask("delete_groups", groups_names=[GROUP])
        assert deleted.results[0].error_code is ErrorCode.non_empty_group
        await beat(client, "a", -1)
        deleted = await client.ask("delete_groups", groups_names=[GROUP])
        assert deleted.results[0].error_code is OK
        assert (await describe(lab)).error_code is ErrorCode.group_id_not_found


async def test_other_types_of_groups_are_told_apart() -> None:
    async with open_lab() as lab:
        client = lab.client()
        await lab.create_topic("t", 1)
        await join(client)
        described = await client.ask("describe_groups", 6, groups=[GROUP])
        assert described.groups[0].error_code is ErrorCode.group_id_not_found
        shared = await client.ask("share_group_describe", group_ids=[GROUP])
        assert shared.groups[0].error_code is ErrorCode.group_id_not_found
        share = await client.ask(
            "share_group_heartbeat",
            group_id=GROUP,
            member_id="s",
            member_epoch=0,
            subscribed_topic_names=["t"],
        )
        assert share.error_code is ErrorCode.group_id_not_found


@pytest.mark.parametrize("version", [9, 10])
async def test_offsets_are_committed_and_fetched_with_a_member_epoch(version: int) -> None:
    async with open_lab() as lab:
        client = lab.client()
        topic_id = await lab.create_topic("t", 1)
        await join(client)
        topic = {"name": "t", "topic_id": topic_id}

        async def commit(epoch: int) -> ErrorCode:
            committed = {"partition_index": 0, "committed_offset": 5, "committed_metadata": ""}
            response = await client.ask(
                "offset_commit",
                version,
                group_id=GROUP,
                member_id="a",
                generation_id_or_member_epoch=epoch,
                topics=[{**topic, "partitions": [committed]}],
            )
            code: ErrorCode = response.topics[0].partitions[0].error_code
            return code

        async def fetch(epoch: int) -> Any:
            wanted = {**topic, "partition_indexes": [0]}
            asked = {"group_id": GROUP, "member_id": "a", "member_epoch": epoch, "topics": [wanted]}
            return (await client.ask("offset_fetch", version, groups=[asked])).groups[0]

        assert await commit(2) is OK
        assert await commit(7) is ErrorCode.stale_member_epoch
        assert (await fetch(2)).topics[0].partitions[0].committed_offset == 5
        assert (await fetch(1)).error_code is ErrorCode.stale_member_epoch


async def test_a_regular_expression_finds_topics_that_come_later() -> None:
    async with open_lab(**NO_INTERVAL) as lab:
        client = lab.client()
        joined = await join(client, subscribed_topic_names=None, subscribed_topic_regex="orders-[a-z]+")
        assert (joined.error_code, partitions(joined)) == (OK, {})
        topic_id = await lab.create_topic("orders-eu", 2)
        await lab.create_topic("orders-1", 1)
        await lab.advance(10_001)
        await beat(client, "a", joined.member_epoch)
        found = await beat(client, "a", joined.member_epoch)
        assert partitions(found) == {topic_id: [0, 1]}


async def test_a_group_has_settings_of_its_own() -> None:
    async with open_lab() as lab:
        client = lab.client()

        async def alter(name: str, value: str) -> ErrorCode:
            response = await client.ask(
                "incremental_alter_configs",
                resources=[
                    {
                        "resource_type": 32,
                        "resource_name": GROUP,
                        "configs": [{"name": name, "config_operation": 0, "value": value}],
                    }
                ],
                validate_only=False,
            )
            code: ErrorCode = response.responses[0].error_code
            return code

        assert await alter("consumer.heartbeat.interval.ms", "7000") is OK
        assert (await join(client)).heartbeat_interval.total_seconds() == 7
        assert await alter("consumer.heartbeat.interval.ms", "70000") is ErrorCode.invalid_config
        assert await alter("consumer.session.timeout.ms", "1000") is ErrorCode.invalid_config


async def test_a_session_ends_by_the_clock() -> None:
    async with open_lab() as lab:
        await join(lab.client())
        await lab.advance(44_999)
        assert len((await describe(lab)).members) == 1
        await lab.advance(1)
        assert (await describe(lab)).group_state == "Empty"


async def test_groups_are_there_again_after_a_restart() -> None:
    async with open_lab() as lab:
        topic_id = await lab.create_topic("t", 2)
        await join(lab.client())
        before = await describe(lab)
        await lab.restart()
        assert await describe(lab) == before
        assert (await beat(lab.client(), "a", 2)).error_code is OK
        assert before.members[0].assignment.topic_partitions[0].topic_id == topic_id


async def test_without_the_feature_nothing_is_served() -> None:
    async with open_lab() as lab:
        client = lab.client()
        update = {"feature": "group.version", "max_version_level": 0, "upgrade_type": 2}
        updated = await client.ask("update_features", feature_updates=[update], timeout=1000)
        assert updated.error_code is OK
        assert (await join(client)).error_code is ErrorCode.unsupported_version
        assert (await describe(lab)).error_code is ErrorCode.unsupported_version


async def test_consumer_groups_are_refused_if_their_protocol_is_not_named() -> None:
    async with open_lab(group__coordinator__rebalance__protocols="classic,share") as lab:
        refused = await join(lab.client(), "")
        assert (refused.error_code, refused.member_id) == (ErrorCode.unsupported_version, None)
        response = await lab.client().ask("consumer_group_describe", group_ids=[GROUP, ""])
        assert {group.error_code for group in response.groups} == {ErrorCode.unsupported_version}


async def test_share_groups_and_classic_groups_need_not_be_named() -> None:
    async with open_lab(group__coordinator__rebalance__protocols="classic") as lab:
        heartbeat: dict[str, Any] = {"group_id": "s", "member_id": "m", "subscribed_topic_names": ["t"]}
        assert (await lab.client().ask("share_group_heartbeat", **heartbeat)).error_code is OK
        asked: dict[str, Any] = {"group_id": "c", "session_timeout": 10_000, "protocol_type": "consumer"}
        protocols = [{"name": "range", "metadata": b""}]
        joined = await lab.client().ask("join_group", **asked, protocols=protocols)
        assert joined.error_code is ErrorCode.member_id_required


async def test_consumer_groups_are_refused_while_group_version_is_0() -> None:
    async with open_lab() as lab:
        update = {"feature": "group.version", "max_version_level": 0, "upgrade_type": 2}
        await lab.admin.ask("update_features", feature_updates=[update])
        assert (await join(lab.client())).error_code is ErrorCode.unsupported_version
        assert (await describe(lab)).error_code is ErrorCode.unsupported_version
