"""Common parts of the histories of all group types."""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from tests.differential.stage import Stage


async def group_is_ready(stage: Stage) -> bool:
    """Whether the coordinator works: Kafka creates its topic at the first request."""
    group_id = stage.name("g")
    response = await stage.quietly(0, "find_coordinator", key_type=0, coordinator_keys=[group_id])
    if response.coordinators[0].error_code:
        return False
    asked = {"group_id": group_id, "member_id": None, "member_epoch": -1, "topics": None}
    fetched = await stage.quietly(0, "offset_fetch", 9, groups=[asked], require_stable=False)
    if fetched.groups[0].error_code:
        return False
    beat = {"group_id": group_id, "member_id": "first", "generation_id": -1}
    response = await stage.quietly(0, "heartbeat", 0, **beat)
    ready: bool = response.error_code is ErrorCode.unknown_member_id
    return ready
