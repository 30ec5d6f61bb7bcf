"""A share group beside the classic ones."""

from __future__ import annotations

from barnabas.coordinator.share_group.heartbeat import JOIN_EPOCH, HeartbeatRequest
from barnabas.runtime.moment import Moment
from tests.coordinator.classic.classic_bench import TOPIC, Bench


def make_share_group(bench: Bench, group_id: str) -> None:
    """Let a share group have this id."""
    request = HeartbeatRequest(group_id, "member", JOIN_EPOCH, None, (TOPIC,), "client", "/127.0.0.1")
    bench.groups.share.heartbeat(request, Moment(bench.now_ms, bench.wall_ms)).result()
