"""The brokers' addresses and the security of the connections, from the formats' options.

A `Servers` is made on the driver and pickled to executors, which open their own connections.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.errors import MisuseError
from barnabas.client.network.address import Address, parse_bootstrap
from barnabas.client.network.security import PLAINTEXT, Security
from barnabas.pipeline.errors import OptionError
from barnabas.pipeline.options import Options
from barnabas.pipeline.security import take_security

CLIENT_ID: Final = "barnabas-pipeline"
REQUEST_TIMEOUT_MS: Final = 30_000
"""A response that takes longer than this, plus the wait in its request, ends its connection."""


@dataclass(frozen=True)
class Servers:
    """The brokers of one cluster. Holds secrets; its representation does not show them."""

    addresses: tuple[Address, ...]
    security: Security = PLAINTEXT
    client_id: str = CLIENT_ID
    request_timeout_ms: int = REQUEST_TIMEOUT_MS

    def __str__(self) -> str:
        return ",".join(map(str, self.addresses))

    def cluster(self) -> Cluster:
        """The cluster, for the running event loop; it connects at the first request."""
        return Cluster(
            self.addresses,
            client_id=self.client_id,
            request_timeout_ms=self.request_timeout_ms,
            security=self.security,
        )


def take_servers(options: Options) -> Servers:
    """Takes the options `servers` and `kafka.*`. Raises `OptionError`."""
    given = options.required("servers", "127.0.0.1:9092")
    try:
        addresses = tuple(parse_bootstrap(given))
    except MisuseError as error:
        raise OptionError("servers", str(error)) from error
    return Servers(addresses, take_security(options))
