"""Share groups that are switched off while members work (share.version 0), and on again.

Every share API answers UNSUPPORTED_VERSION, as Kafka 4.3.1 does. Records that members hold are released, and
waiting requests are answered immediately.
"""

from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode
from tests.conformance.conftest import Stage
from tests.conformance.harness import Lab, settle
from tests.conformance.share_member import ACCEPT, GROUP

OFF = ErrorCode.unsupported_version
_UPGRADE, _SAFE_DOWNGRADE = 1, 2


async def set_share_version(lab: Lab, level: int) -> None:
    update = {
        "feature": "share.version",
        "max_version_level": level,
        "upgrade_type": _UPGRADE if level else _SAFE_DOWNGRADE,
    }
    response = await lab.admin.ask("update_features", feature_updates=[update])
    assert response.error_code is ErrorCode.none, response
    await settle()


def error_codes(response: Any) -> set[ErrorCode]:
    groups = getattr(response, "groups", None)
    return {response.error_code} if groups is None else {group.error_code for group in groups}


@pytest.mark.parametrize(
    ("api", "values"),
    [
        ("share_group_heartbeat", {"group_id": GROUP, "member_id": "m", "subscribed_topic_names": ["t"]}),
        ("share_group_describe", {"group_ids": [GROUP, "other"]}),
        ("share_fetch", {"group_id": GROUP, "member_id": "m"}),
        ("share_acknowledge", {"group_id": GROUP, "member_id": "m", "share_session_epoch": 1}),
        ("describe_share_group_offsets", {"groups": [{"group_id": GROUP, "topics": None}]}),
        ("alter_share_group_offsets", {"group_id": GROUP}),
        ("delete_share_group_offsets", {"group_id": GROUP}),
    ],
)
async def test_every_share_api_is_off(stage: Stage, api: str, values: dict[str, Any]) -> None:
    await set_share_version(stage.lab, 0)
    assert error_codes(await stage.lab.client().ask(api, **values)) == {OFF}


async def test_a_waiting_fetch_is_answered_immediately(stage: Stage) -> None:
    member = stage.member()
    waiting = member.start_fetch(max_wait=60_000)
    await settle()
    assert not waiting.done
    await set_share_version(stage.lab, 0)
    assert waiting.done
    assert waiting.response().error_code is OFF


async def test_records_of_members_are_delivered_again_once_share_groups_are_back(stage: Stage) -> None:
    await stage.produce(10)
    member = stage.member()
    await member.take()
    await member.acknowledge([(0, 2, ACCEPT)])
    await set_share_version(stage.lab, 0)
    assert (await member.acknowledge([(3, 3, ACCEPT)])).error == OFF
    await set_share_version(stage.lab, 1)
    assert (await member.acknowledge([(3, 3, ACCEPT)])).error == ErrorCode.share_session_not_found
    assert await stage.offsets() == (3, 7)
    assert await stage.member().take() == [(3, 9, 2)]


async def test_share_groups_stay_off_over_a_restart(stage: Stage) -> None:
    await set_share_version(stage.lab, 0)
    await stage.lab.restart()
    heartbeat = await stage.member().heartbeat(0, ["t"])
    assert heartbeat.error_code is OFF
    await set_share_version(stage.lab, 1)
    assert (await stage.member().heartbeat(0, ["t"])).error_code is ErrorCode.none
