"""Looks at a share group from outside, without being a member: start offsets and lag (KIP-1226).

async with ShareGroupAdmin("127.0.0.1:9092") as admin:
    positions = await admin.positions("workers")
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self, Unpack

from barnabas.client.address import parse_bootstrap
from barnabas.client.cluster import Cluster
from barnabas.client.common_options import ClientOptions, ClientSettings, check_option_names
from barnabas.client.coordinators import Coordinators
from barnabas.client.group_consumer import named
from barnabas.client.share_group_offsets import SharePosition, fetch_positions
from barnabas.client.tasks import find_cluster
from barnabas.client.topic_partition import TopicPartition
from barnabas.client.topics import Retries


class ShareGroupAdmin:
    """Enter it with `async with`. Any number of tasks may use it."""

    def __init__(self, bootstrap: str | Sequence[str], **options: Unpack[ClientOptions]) -> None:
        """`bootstrap` is `host:port`, or several; `options` are those of `ClientSettings`."""
        check_option_names(options, ClientOptions.__annotations__)
        self._settings = settings = ClientSettings(**options)
        self._cluster = Cluster(
            parse_bootstrap(bootstrap),
            client_id=settings.client_id,
            request_timeout_ms=settings.request_timeout_ms,
            security=settings.security,
        )
        retries = Retries(
            backoff_ms=settings.retry_backoff_ms,
            backoff_max_ms=settings.retry_backoff_max_ms,
            give_up_ms=settings.request_timeout_ms,
        )
        self._coordinators = Coordinators(self._cluster, retries)

    async def __aenter__(self) -> Self:
        """Raises `SecurityError`, and `BrokerUnavailableError` after `connect_timeout_ms`."""
        try:
            await find_cluster(self._cluster, self._settings)
        except BaseException:
            self._close()
            raise
        return self

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._close()

    async def positions(self, group: str) -> dict[TopicPartition, SharePosition]:
        """By partition, the position of a group in all partitions that it reads; empty for an unknown group.

        Raises `BrokerError`, `MisuseError` for an empty name, and `BrokerUnavailableError` if a temporary
        error lasts for `request_timeout_ms`.
        """
        return await fetch_positions(self._coordinators, named("group", group))

    def _close(self) -> None:
        self._coordinators.close()
        self._cluster.close()
