"""ShareGroupDescribe's handler: several groups in one response. The rules are in tests/conformance."""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from tests.conformance.conftest import make_stage
from tests.conformance.harness import open_lab
from tests.conformance.share_member import GROUP

READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS = 3, 6, 8, 10, 11


async def test_each_group_has_its_own_error_in_the_order_of_the_request() -> None:
    async with open_lab() as lab:
        await make_stage(lab)
        response = await lab.admin.ask("share_group_describe", group_ids=["", GROUP, "nowhere"])
        assert [(group.group_id, group.error_code) for group in response.groups] == [
            ("", ErrorCode.invalid_group_id),
            (GROUP, ErrorCode.none),
            ("nowhere", ErrorCode.group_id_not_found),
        ]
        assert response.groups[2].error_message


async def test_every_operation_on_a_group_is_authorized() -> None:
    async with open_lab() as lab:
        await make_stage(lab)
        response = await lab.admin.ask(
            "share_group_describe", group_ids=[GROUP], include_authorized_operations=True
        )
        operations = response.groups[0].authorized_operations
        told = [bit for bit in range(31) if operations & 1 << bit]
        assert told == [READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS]
