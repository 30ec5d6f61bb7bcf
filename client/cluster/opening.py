"""The start of a client: its cluster and its retries, and the search for a broker that answers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from barnabas.client.cluster.client_options import ClientSettings
from barnabas.client.cluster.cluster import Cluster
from barnabas.client.errors import BrokerUnavailableError
from barnabas.client.network.address import Address
from barnabas.client.waiting.patience import Retries

log = logging.getLogger(__name__)

_MS_PER_SECOND: Final = 1000


def new_cluster(bootstrap: Sequence[Address], settings: ClientSettings) -> Cluster:
    """A cluster without connections."""
    return Cluster(
        bootstrap,
        client_id=settings.client_id,
        request_timeout_ms=settings.request_timeout_ms,
        security=settings.security,
    )


def retries_of(settings: ClientSettings, *, give_up_ms: int = Retries.give_up_ms) -> Retries:
    """Retries with the pauses of the settings."""
    return Retries(
        backoff_ms=settings.retry_backoff_ms,
        backoff_max_ms=settings.retry_backoff_max_ms,
        give_up_ms=give_up_ms,
    )


async def find_cluster(cluster: Cluster, settings: ClientSettings) -> None:
    """Return once a broker has answered.

    Raises `BrokerUnavailableError` after `connect_timeout_ms`, and `SecurityError` immediately.
    """
    loop, backoff = asyncio.get_running_loop(), settings.backoff()
    deadline = loop.time() + settings.connect_timeout_ms / _MS_PER_SECOND
    while True:
        try:
            await cluster.refresh(())
            return
        except BrokerUnavailableError as error:
            pause = backoff.next_ms() / _MS_PER_SECOND
            if loop.time() + pause >= deadline:
                raise
            log.info("No broker answers yet: %s", error)
        await asyncio.sleep(pause)
