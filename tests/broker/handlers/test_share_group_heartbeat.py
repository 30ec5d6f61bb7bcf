"""ShareGroupHeartbeat's handler: fields and deadlines. The rules are in tests/conformance."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from structlog.testing import capture_logs

from barnabas.protocol.errors import ErrorCode
from tests.conformance.conftest import Stage, make_stage
from tests.conformance.harness import open_lab
from tests.conformance.share_member import GROUP


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with open_lab() as lab:
        yield await make_stage(lab)


async def test_rack_client_id_and_host_reach_the_group(stage: Stage) -> None:
    await stage.member().heartbeat(2, rack_id="rack-9")
    described = await stage.lab.admin.ask("share_group_describe", group_ids=[GROUP])
    (member,) = described.groups[0].members
    assert (member.rack_id, member.client_id, member.client_host) == ("rack-9", "client", "/127.0.0.1")


async def test_the_log_tells_which_client_has_joined_with_a_member_id(stage: Stage) -> None:
    with capture_logs() as lines:
        await stage.member(2).join("t")
        await stage.member(2).heartbeat(1)
        await stage.member(7).heartbeat(3)
    (line,) = [one for one in lines if one["event"] == "a member joins a share group"]
    assert line == {
        "event": "a member joins a share group",
        "log_level": "info",
        "group": GROUP,
        "member_id": "member-2",
        "client_id": "client",
        "client": "/127.0.0.1",
        "subject": "share_groups",
    }


async def test_a_steady_heartbeat_is_answered_immediately_and_appends_nothing(stage: Stage) -> None:
    member = stage.member()
    await member.heartbeat(2)
    files = {path: len(content) for path, content in stage.lab.filesystem.files.items()}
    pending = member.client.send(
        "share_group_heartbeat", group_id=GROUP, member_id="member-1", member_epoch=2
    )
    assert pending.done
    assert pending.response().assignment is None
    assert files == {path: len(content) for path, content in stage.lab.filesystem.files.items()}


async def test_an_error_has_a_message_and_no_member(stage: Stage) -> None:
    response = await stage.member(7).heartbeat(3)
    assert response.error_code is ErrorCode.unknown_member_id
    assert "member-7" in response.error_message
    assert (response.member_id, response.member_epoch, response.assignment) == (None, 0, None)


async def test_the_first_member_sets_the_brokers_timer(stage: Stage) -> None:
    await stage.lab.advance(45_000)
    described = await stage.lab.admin.ask("share_group_describe", group_ids=[GROUP])
    assert described.groups[0].members == ()
