"""The cluster, its coordinators and its leaders, for a client that inspects or changes one share group."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from barnabas.client.address import parse_bootstrap
from barnabas.client.cluster import Cluster
from barnabas.client.common_options import ClientOptions, ClientSettings, check_option_names
from barnabas.client.coordinators import Coordinators
from barnabas.client.group_consumer import named
from barnabas.client.inspect.record_requests import RecordRequests
from barnabas.client.tasks import find_cluster
from barnabas.client.topics import Retries


class GroupConnection:
    """Call `start`, then `close` once."""

    def __init__(self, bootstrap: str | Sequence[str], group_id: str, options: ClientOptions) -> None:
        """Raises `MisuseError` for malformed addresses and options, and for an empty group id."""
        check_option_names(options, ClientOptions.__annotations__)
        self._settings = settings = ClientSettings(**options)
        self.retries = Retries(
            backoff_ms=settings.retry_backoff_ms,
            backoff_max_ms=settings.retry_backoff_max_ms,
            give_up_ms=settings.connect_timeout_ms,
        )
        """Temporary errors are retried as long as the search for a broker."""
        self.cluster = Cluster(
            parse_bootstrap(bootstrap),
            client_id=settings.client_id,
            request_timeout_ms=settings.request_timeout_ms,
            security=settings.security,
        )
        self.coordinators = Coordinators(self.cluster, self.retries)
        self.requests = RecordRequests(self.cluster, self.retries, named("group", group_id))

    async def start(self) -> None:
        """Find the cluster. Raises `BrokerUnavailableError` and `SecurityError`; then it is closed."""
        try:
            await find_cluster(self.cluster, self._settings)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        self.requests.close()
        self.coordinators.close()
        self.cluster.close()
        await asyncio.sleep(0)  # the connections' transports close in the loop's next round
