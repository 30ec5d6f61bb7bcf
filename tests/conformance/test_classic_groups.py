"""Classic groups over the protocol, in every version, compared with the answers of Apache Kafka 4.3.1.

The rules themselves are tested beside the coordinator; these tests cover the path between the rules and a
client.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from barnabas.protocol.errors import ErrorCode
from tests.conformance.harness import Client, Lab, open_lab

GROUP = "billing"
OK = ErrorCode.none
PROTOCOLS = [{"name": "range", "metadata": b"meta"}]


def start_join(client: Client, member_id: str = "", version: int = 9, **changed: Any) -> Any:
    asked = {
        "group_id": GROUP,
        "session_timeout": 10_000,
        "rebalance_timeout": 60_000,
        "member_id": member_id,
        "protocol_type": "consumer",
        "protocols": PROTOCOLS,
        **changed,
    }
    return client.send("join_group", version, **asked)


async def joined(lab: Lab, client: Client, version: int = 9) -> Any:
    """A member alone in its group, which knows the generation."""
    member_id = ""
    if version >= 4:
        asked_again = await client.answered(start_join(client, version=version))
        assert asked_again.error_code is ErrorCode.member_id_required
        member_id = asked_again.member_id
    pending = start_join(client, member_id, version)
    await lab.advance(1)
    return pending.response()


async def sync(client: Client, member: Any, version: int = 5, **changed: Any) -> Any:
    asked = {
        "group_id": GROUP,
        "generation_id": member.generation_id,
        "member_id": member.member_id,
        "protocol_type": "consumer",
        "protocol_name": "range",
        "assignments": [{"member_id": member.member_id, "assignment": b"all"}],
        **changed,
    }
    return await client.ask("sync_group", version, **asked)


@pytest.mark.parametrize("version", range(10))
async def test_a_member_joins_in_every_version(version: int) -> None:
    async with open_lab() as lab:
        member = await joined(lab, lab.client(), version)
        assert (member.error_code, member.generation_id, member.leader) == (OK, 1, member.member_id)
        assert (member.protocol_name, member.members[0].metadata) == ("range", b"meta")


@pytest.mark.parametrize("version", range(6))
async def test_a_member_is_assigned_in_every_version(version: int) -> None:
    async with open_lab() as lab:
        client = lab.client()
        member = await joined(lab, client)
        assert (await sync(client, member, version)).assignment == b"all"


@pytest.mark.parametrize("version", range(5))
async def test_a_member_stays_in_every_version(version: int) -> None:
    async with open_lab() as lab:
        client = lab.client()
        member = await joined(lab, client)
        beat = {"group_id": GROUP, "generation_id": 1, "member_id": member.member_id}
        assert (await client.ask("heartbeat", version, **beat)).error_code is OK


@pytest.mark.parametrize("version", range(6))
async def test_a_member_leaves_in_every_version(version: int) -> None:
    async with open_lab() as lab:
        client = lab.client()
        member = await joined(lab, client)
        members = [{"member_id": member.member_id, "group_instance_id": None}]
        for expected in (OK, ErrorCode.unknown_member_id):
            left = await client.ask(
                "leave_group", version, group_id=GROUP, member_id=member.member_id, members=members
            )
            codes = [one.error_code for one in left.members] if version >= 3 else [left.error_code]
            assert codes == [expected]


async def test_the_protocol_must_be_named_since_version_5() -> None:
    async with open_lab() as lab:
        client = lab.client()
        member = await joined(lab, client)
        refused = await sync(client, member, protocol_name=None)
        assert refused.error_code is ErrorCode.inconsistent_group_protocol


def to_commit(topic_id: UUID, *partitions: int) -> list[dict[str, Any]]:
    asked = [{"partition_index": one, "committed_offset": 7, "committed_metadata": "n"} for one in partitions]
    return [{"name": "t", "topic_id": topic_id, "partitions": asked}]


@pytest.mark.parametrize("version", range(2, 11))
async def test_offsets_are_committed_in_every_version(version: int) -> None:
    async with open_lab() as lab:
        topic_id = await lab.create_topic()
        response = await lab.client().ask(
            "offset_commit", version, group_id=GROUP, member_id="", topics=to_commit(topic_id, 0, 9)
        )
        codes = [(one.partition_index, one.error_code) for one in response.topics[0].partitions]
        assert codes == [(0, OK), (9, ErrorCode.unknown_topic_or_partition)]


@pytest.mark.parametrize("version", range(1, 11))
async def test_offsets_are_fetched_in_every_version(version: int) -> None:
    async with open_lab() as lab:
        topic_id = await lab.create_topic(partition_count=2)
        client = lab.client()
        await client.ask("offset_commit", group_id=GROUP, member_id="", topics=to_commit(topic_id, 0))
        wanted = [{"name": "t", "topic_id": topic_id, "partition_indexes": [0, 1]}]
        group = {"group_id": GROUP, "topics": wanted}
        response = await client.ask("offset_fetch", version, groups=[group], **group)
        topics = response.groups[0].topics if version >= 8 else response.topics
        found = [(one.partition_index, one.committed_offset, one.metadata) for one in topics[0].partitions]
        assert found == [(0, 7, "n"), (1, -1, "")]


@pytest.mark.parametrize("version", [2, 8, 10])
async def test_all_offsets_of_a_group_may_be_asked_for(version: int) -> None:
    async with open_lab() as lab:
        topic_id = await lab.create_topic()
        client = lab.client()
        await client.ask("offset_commit", group_id=GROUP, member_id="", topics=to_commit(topic_id, 0))
        group = {"group_id": GROUP, "topics": None}
        response = await client.ask("offset_fetch", version, groups=[group], **group)
        topics = response.groups[0].topics if version >= 8 else response.topics
        assert [one.committed_offset for one in topics[0].partitions] == [7]


async def test_topics_that_are_not_there_are_errors_of_their_own() -> None:
    async with open_lab() as lab:
        await lab.create_topic()
        client = lab.client()
        absent = UUID(int=77)
        committed = await client.ask(
            "offset_commit", group_id=GROUP, member_id="", topics=to_commit(absent, 0)
        )
        assert committed.topics[0].partitions[0].error_code is ErrorCode.unknown_topic_id
        group = {"group_id": GROUP, "topics": [{"topic_id": absent, "partition_indexes": [0]}]}
        fetched = await client.ask("offset_fetch", groups=[group])
        assert fetched.groups[0].topics[0].partitions[0].error_code is ErrorCode.unknown_topic_id


async def test_a_topic_made_again_does_not_inherit() -> None:
    async with open_lab() as lab:
        topic_id = await lab.create_topic()
        client = lab.client()
        await client.ask("offset_commit", group_id=GROUP, member_id="", topics=to_commit(topic_id, 0))
        await lab.delete_topic("t")
        again = await lab.create_topic()
        group = {"group_id": GROUP, "topics": [{"topic_id": again, "partition_indexes": [0]}]}
        fetched = await client.ask("offset_fetch", groups=[group])
        assert fetched.groups[0].topics[0].partitions[0].committed_offset == -1


@pytest.mark.parametrize(("version", "code"), [(5, OK), (6, ErrorCode.group_id_not_found)])
async def test_a_group_that_is_not_there_is_described_as_dead(version: int, code: ErrorCode) -> None:
    async with open_lab() as lab:
        (group,) = (await lab.client().ask("describe_groups", version, groups=[GROUP])).groups
        assert (group.error_code, group.group_state) == (code, "Dead")


async def test_a_stable_group_is_described_with_its_members() -> None:
    async with open_lab() as lab:
        client = lab.client("desk")
        member = await joined(lab, client)
        await sync(client, member)
        (group,) = (await client.ask("describe_groups", groups=[GROUP])).groups
        assert (group.group_state, group.protocol_type, group.protocol_data) == (
            "Stable",
            "consumer",
            "range",
        )
        (described,) = group.members
        assert (described.client_id, described.client_host) == ("desk", "/127.0.0.1")
        assert (described.member_metadata, described.member_assignment) == (b"meta", b"all")


async def test_groups_of_both_types_are_listed_and_filtered() -> None:
    async with open_lab() as lab:
        await joined(lab, lab.client())
        listed = await lab.admin.ask("list_groups", types_filter=["Classic"])
        assert [(one.group_id, one.group_type, one.protocol_type) for one in listed.groups] == [
            (GROUP, "classic", "consumer")
        ]
        assert (await lab.admin.ask("list_groups", types_filter=["share"])).groups == ()


async def test_offsets_and_groups_are_deleted() -> None:
    async with open_lab() as lab:
        topic_id = await lab.create_topic(partition_count=2)
        client = lab.client()
        await client.ask("offset_commit", group_id=GROUP, member_id="", topics=to_commit(topic_id, 0, 1))
        topics = [{"name": "t", "partitions": [{"partition_index": 0}, {"partition_index": 5}]}]
        deleted = await client.ask("offset_delete", group_id=GROUP, topics=topics)
        codes = [one.error_code for one in deleted.topics[0].partitions]
        assert codes == [OK, ErrorCode.unknown_topic_or_partition]
        gone = await client.ask("delete_groups", groups_names=[GROUP])
        assert gone.results[0].error_code is OK
        again = await client.ask("offset_delete", group_id=GROUP, topics=topics)
        assert again.error_code is ErrorCode.group_id_not_found


async def test_a_group_outlives_a_crash_of_the_broker() -> None:
    async with open_lab() as lab:
        topic_id = await lab.create_topic()
        client = lab.client()
        member = await joined(lab, client)
        await sync(client, member)
        await client.ask(
            "offset_commit",
            group_id=GROUP,
            member_id=member.member_id,
            generation_id_or_member_epoch=1,
            topics=to_commit(topic_id, 0),
        )
        await lab.crash()
        client = lab.client()
        beat: dict[str, Any] = {"group_id": GROUP, "generation_id": 1, "member_id": member.member_id}
        assert (await client.ask("heartbeat", **beat)).error_code is OK
        assert (await sync(client, member)).assignment == b"all"
        wanted = {"group_id": GROUP, "topics": [{"topic_id": topic_id, "partition_indexes": [0]}]}
        fetched = await client.ask("offset_fetch", groups=[wanted])
        assert fetched.groups[0].topics[0].partitions[0].committed_offset == 7


async def test_a_broker_that_stops_between_joining_and_syncing_lets_members_join_again() -> None:
    async with open_lab() as lab:
        client = lab.client()
        member = await joined(lab, client)
        await lab.crash()
        client = lab.client()
        refused = await sync(client, member)
        assert refused.error_code is ErrorCode.unknown_member_id
        assert (await joined(lab, client)).error_code is OK


@pytest.mark.parametrize("version", range(1, 11))
async def test_a_topic_that_is_asked_for_twice_is_answered_with_all_its_partitions(version: int) -> None:
    async with open_lab() as lab:
        topic_id = await lab.create_topic(partition_count=2)
        client = lab.client()
        await client.ask("offset_commit", group_id=GROUP, member_id="", topics=to_commit(topic_id, 0, 1))
        wanted = [{"name": "t", "topic_id": topic_id, "partition_indexes": [one]} for one in (0, 1)]
        group = {"group_id": GROUP, "topics": wanted}
        response = await client.ask("offset_fetch", version, groups=[group], **group)
        topics = response.groups[0].topics if version >= 8 else response.topics
        found = {one.partition_index: one.committed_offset for topic in topics for one in topic.partitions}
        assert found == {0: 7, 1: 7}
