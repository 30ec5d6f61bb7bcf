"""The handlers of the broker's APIs, each imported at its first use."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Final, cast

from barnabas.broker.network.handler import Handler
from barnabas.protocol.api import APIS, ApiKey

if TYPE_CHECKING:
    from barnabas.broker.node.broker import Broker

WARMED_APIS: Final = (
    ApiKey.API_VERSIONS,
    ApiKey.METADATA,
    ApiKey.PRODUCE,
    ApiKey.FIND_COORDINATOR,
    ApiKey.SHARE_GROUP_HEARTBEAT,
    ApiKey.SHARE_FETCH,
    ApiKey.SHARE_ACKNOWLEDGE,
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ApiKey.LIST_OFFSETS,
    ApiKey.FETCH,
    ApiKey.OFFSET_FETCH,
    ApiKey.OFFSET_COMMIT,
    ApiKey.JOIN_GROUP,
    ApiKey.SYNC_GROUP,
    ApiKey.HEARTBEAT,
    ApiKey.LEAVE_GROUP,
    ApiKey.OFFSET_FOR_LEADER_EPOCH,
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.ADD_OFFSETS_TO_TXN,
    ApiKey.TXN_OFFSET_COMMIT,
    ApiKey.END_TXN,
)
"""The APIs of producers and consumers, those of the first requests first. The APIs of administrators and of
other brokers wait for their first request, which then takes a few milliseconds: few brokers get requests for
most of them, and all together would take 5 MiB and a quarter of a second of each start.
"""


class LazyHandlers(dict[int, "Handler[Broker]"]):
    """The handlers by API key: `handle_<api>` of the module `<api>` in this folder.

    All of them together, with their message classes, take longer to import than the whole start of a broker.
    """

    def __missing__(self, api_key: int) -> Handler[Broker]:
        name = APIS[ApiKey(api_key)].name
        module = importlib.import_module(f"barnabas.broker.handlers.{name}")
        handler = cast("Handler[Broker]", getattr(module, f"handle_{name}"))
        self[api_key] = handler
        return handler
