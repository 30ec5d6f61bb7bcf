"""DeleteShareGroupOffsets' handler. The rules are in tests/conformance."""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from tests.conformance.conftest import make_stage
from tests.conformance.harness import open_lab
from tests.conformance.share_member import GROUP


async def test_the_state_of_all_partitions_of_a_topic_is_deleted() -> None:
    async with open_lab() as lab:
        topic_id = await lab.create_topic("u", 3)
        stage = await make_stage(lab)
        await stage.member().join("t", "u")
        await stage.member().heartbeat(-1)
        response = await lab.admin.ask(
            "delete_share_group_offsets", group_id=GROUP, topics=[{"topic_name": "u"}]
        )
        (deleted,) = response.responses
        assert (deleted.topic_id, deleted.error_code, deleted.error_message) == (
            topic_id,
            ErrorCode.none,
            None,
        )
        described = await lab.admin.ask(
            "describe_share_group_offsets", groups=[{"group_id": GROUP, "topics": None}]
        )
        assert [topic.topic_name for topic in described.groups[0].topics] == ["t"]
