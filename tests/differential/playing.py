"""One history on one broker, and its observations."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Final

from tests.differential.peers import Peer
from tests.differential.stage import BROKEN_OFF, Observation, Stage

AREAS: Final = (
    "log",
    "fetch_sessions",
    "classic_groups",
    "consumer_groups",
    "subscriptions",
    "migration",
    "share_groups",
    "share_offsets",
    "dead_letters",
    "transactions",
    "quotas",
    "topics",
    "cluster",
)
"""The subjects of histories."""

SETTINGS: Final[Mapping[str, str]] = {
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.min.heartbeat.interval.ms": "1000",
    "group.consumer.assignment.interval.ms": "0",
}
"""Settings of both brokers: locks that end during a short wait, and immediate assignments."""


def unique_suffix(area: str, seed: int, run: int) -> str:
    """The suffix that makes the names of a history's topics and groups unique; equally long in all runs."""
    return f"-{area}-{seed:05d}-{run:08d}"


async def observe(
    peer: Peer, area: str, seed: int, unique: str, *, too_new: Mapping[str, int] | None = None
) -> list[Observation]:
    """Play history number `seed` of an area; `unique` makes the names of its topics and groups its own.

    `too_new` as for a `Stage`.
    """
    stage = Stage(peer, seed=f"{area} {seed}", unique=unique, too_new=too_new)
    try:
        await import_module(f"tests.differential.areas.{area}").play(stage)
    except Exception as error:
        stage.observed.append(Observation(BROKEN_OFF, 0, "", f"broke off: {error!r}"))
    finally:
        stage.close()
    return stage.observed
