"""The handlers of the broker's APIs, each imported at its first use."""

from __future__ import annotations

import importlib
from functools import partial
from typing import TYPE_CHECKING, Final

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


class LazyHandlers(dict[int, Handler]):
    """The handlers of one broker by API key: `handle_<api>` of the module `<api>` in this folder.

    All of them together, with their message classes, take longer to import than the whole start of a broker.
    """

    def __init__(self, broker: Broker) -> None:
        super().__init__()
        self._broker = broker

    def __missing__(self, api_key: int) -> Handler:
        handler = self[api_key] = bound_handler(self._broker, APIS[ApiKey(api_key)].name)
        return handler


def bound_handler(broker: Broker, name: str) -> Handler:
    """The handler of an API by its name, with the parts of the broker that it uses."""
    module = importlib.import_module(f"barnabas.broker.handlers.{name}")
    parts = module.Parts(*(getattr(broker, field) for field in module.Parts._fields))
    return partial(getattr(module, f"handle_{name}"), parts)
