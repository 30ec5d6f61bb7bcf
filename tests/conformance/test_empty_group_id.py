"""The empty group id: consumers without a group commit their offsets under it, and it never has members."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from barnabas.protocol.errors import ErrorCode
from tests.conformance.harness import Lab, open_lab

OK = ErrorCode.none
NO_GROUP = ErrorCode.group_id_not_found
TOPIC_PARTITION: dict[str, Any] = {"name": "t", "partitions": [{"partition_index": 0}]}


async def commit(lab: Lab, topic_id: UUID, offset: int, version: int | None = None, **changed: Any) -> Any:
    partition = {"partition_index": 0, "committed_offset": offset, "committed_metadata": "n"}
    topics = [{"name": "t", "topic_id": topic_id, "partitions": [partition]}]
    asked: dict[str, Any] = {"group_id": "", "member_id": "", "topics": topics, **changed}
    response = await lab.admin.ask("offset_commit", version, **asked)
    return response.topics[0].partitions[0].error_code


async def committed(lab: Lab, topic_id: UUID, version: int | None = None) -> tuple[ErrorCode, int]:
    """The error of the group, or of the partition, and the committed offset."""
    wanted = [{"name": "t", "topic_id": topic_id, "partition_indexes": [0]}]
    group = {"group_id": "", "topics": wanted}
    response = await lab.admin.ask("offset_fetch", version, groups=[group], **group)
    answer = response.groups[0] if version is None or version >= 8 else response
    partition = answer.topics[0].partitions[0]
    return getattr(answer, "error_code", OK) or partition.error_code, partition.committed_offset


@pytest.mark.parametrize("version", range(2, 11))
async def test_an_offset_is_committed_without_a_group_in_every_version(version: int) -> None:
    async with open_lab() as lab:
        topic_id = await lab.create_topic()
        assert await commit(lab, topic_id, 7, version) is OK
        assert await committed(lab, topic_id) == (OK, 7)


@pytest.mark.parametrize("version", range(1, 11))
async def test_an_offset_is_fetched_without_a_group_in_every_version(version: int) -> None:
    async with open_lab() as lab:
        topic_id = await lab.create_topic()
        assert await committed(lab, topic_id, version) == (OK, -1)
        await commit(lab, topic_id, 7)
        assert await committed(lab, topic_id, version) == (OK, 7)


async def test_an_offset_without_a_group_outlives_a_crash() -> None:
    async with open_lab() as lab:
        topic_id = await lab.create_topic()
        await commit(lab, topic_id, 7)
        await lab.crash()
        assert await committed(lab, topic_id) == (OK, 7)


async def test_a_member_commits_nothing_without_a_group() -> None:
    async with open_lab() as lab:
        topic_id = await lab.create_topic()
        assert await commit(lab, topic_id, 7, generation_id_or_member_epoch=3) is NO_GROUP
        await commit(lab, topic_id, 7)
        refused = await commit(lab, topic_id, 8, member_id="me", generation_id_or_member_epoch=3)
        assert refused is ErrorCode.unknown_member_id
        assert await committed(lab, topic_id) == (OK, 7)


async def test_the_offsets_without_a_group_are_listed_described_and_deleted_as_a_group() -> None:
    async with open_lab() as lab:
        topic_id = await lab.create_topic()

        async def state() -> tuple[ErrorCode, str]:
            (group,) = (await lab.admin.ask("describe_groups", groups=[""])).groups
            return group.error_code, group.group_state

        async def deleted() -> ErrorCode:
            code: ErrorCode = (await lab.admin.ask("delete_groups", groups_names=[""])).results[0].error_code
            return code

        assert await state() == (NO_GROUP, "Dead")
        await commit(lab, topic_id, 7)
        assert await state() == (OK, "Empty")
        listed = (await lab.admin.ask("list_groups")).groups
        assert [(group.group_id, group.group_type) for group in listed] == [("", "classic")]
        assert [await deleted(), await deleted()] == [OK, NO_GROUP]
        assert await committed(lab, topic_id) == (OK, -1)


@pytest.mark.parametrize(
    ("api", "asked", "code"),
    [
        ("join_group", {"session_timeout": 10_000}, ErrorCode.invalid_group_id),
        ("sync_group", {"protocol_type": "consumer", "protocol_name": "range"}, ErrorCode.invalid_group_id),
        ("heartbeat", {}, ErrorCode.invalid_group_id),
        ("leave_group", {}, ErrorCode.invalid_group_id),
        ("offset_delete", {"topics": [TOPIC_PARTITION]}, ErrorCode.invalid_group_id),
        ("consumer_group_heartbeat", {"member_id": "m"}, ErrorCode.invalid_request),
        ("share_group_heartbeat", {"member_id": "m"}, ErrorCode.invalid_request),
        ("alter_share_group_offsets", {}, ErrorCode.invalid_group_id),
        ("delete_share_group_offsets", {}, ErrorCode.invalid_group_id),
    ],
)
async def test_a_group_with_members_or_state_needs_an_id(
    api: str, asked: dict[str, Any], code: ErrorCode
) -> None:
    async with open_lab() as lab:
        topic_id = await lab.create_topic()
        await commit(lab, topic_id, 7)
        assert (await lab.admin.ask(api, group_id="", **asked)).error_code is code
        assert await committed(lab, topic_id) == (OK, 7)


@pytest.mark.parametrize("api", ["consumer_group_describe", "share_group_describe"])
async def test_a_group_of_a_newer_type_needs_an_id(api: str) -> None:
    async with open_lab() as lab:
        (group,) = (await lab.admin.ask(api, group_ids=[""])).groups
        assert group.error_code is ErrorCode.invalid_group_id
