"""Before the first history a broker creates the internal topics that histories need."""

from __future__ import annotations

from functools import partial

from tests.differential.areas.groups import group_is_ready
from tests.differential.peers import Peer
from tests.differential.stage import Stage


async def warm_up(peer: Peer) -> None:
    """Brokers create their internal topics when these are first needed."""
    stage = Stage(peer, seed="", unique="-first")
    try:
        await stage.until(partial(group_is_ready, stage))
        await stage.until(partial(_has_transactions, stage))
        protocols = [{"name": "range", "metadata": b""}]
        joining = {
            "group_id": "first",
            "member_id": "",
            "protocol_type": "consumer",
            "protocols": protocols,
        }
        await stage.quietly(0, "join_group", 0, session_timeout=30_000, **joining)
    finally:
        stage.close()


async def _has_transactions(stage: Stage) -> bool:
    found = await stage.quietly(0, "find_coordinator", key_type=1, coordinator_keys=["first"])
    listed = await stage.quietly(0, "list_transactions", state_filters=[], producer_id_filters=[])
    ready: bool = found.coordinators[0].error_code == listed.error_code == 0
    return ready
