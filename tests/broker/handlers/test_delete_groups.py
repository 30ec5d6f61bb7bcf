"""DeleteGroups' handler: several groups in one request. The rules are in tests/conformance."""

from __future__ import annotations

import errno

import pytest

from barnabas.protocol.errors import ErrorCode
from tests.conformance.conftest import make_stage
from tests.conformance.harness import open_lab
from tests.conformance.share_member import GROUP


@pytest.mark.parametrize("version", [0, 1, 2, 3])
async def test_a_group_named_twice_is_deleted_once(version: int) -> None:
    async with open_lab() as lab:
        stage = await make_stage(lab)
        await stage.member().heartbeat(-1)
        response = await lab.admin.ask("delete_groups", version, groups_names=[GROUP, GROUP])
        assert [(one.group_id, one.error_code) for one in response.results] == [(GROUP, ErrorCode.none)]


@pytest.mark.parametrize(("version", "is_told"), [(2, False), (3, True)])
async def test_errors_have_a_message_from_version_3_on(version: int, is_told: bool) -> None:
    async with open_lab() as lab:
        stage = await make_stage(lab)
        await stage.member().heartbeat(0)
        response = await lab.admin.ask("delete_groups", version, groups_names=[GROUP])
        (result,) = response.results
        assert result.error_code is ErrorCode.non_empty_group
        assert bool(getattr(result, "error_message", None)) is is_told


async def test_a_group_stays_if_its_deletion_cannot_be_written() -> None:
    async with open_lab() as lab:
        stage = await make_stage(lab)
        await stage.produce(1)
        await stage.member().take()
        await stage.member().heartbeat(-1)
        lab.filesystem.write_error, lab.filesystem.failing_suffix = errno.EIO, "t-0/00000000000000000000.log"
        response = await lab.admin.ask("delete_groups", groups_names=[GROUP])
        assert response.results[0].error_code is not ErrorCode.none
        lab.filesystem.write_error = None
        await lab.crash()
        response = await lab.admin.ask("delete_groups", groups_names=[GROUP])
        assert response.results[0].error_code is ErrorCode.none
        assert (await lab.admin.ask("list_groups")).groups == ()
