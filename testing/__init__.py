"""A real broker for tests, in its own process, whose clock, faults and state the tests control.

    from barnabas.testing import Broker

    with Broker() as broker:
        run(bootstrap_servers=broker.bootstrap_servers)
        broker.clock.advance(seconds=31)

`async with Broker()` gives the same as coroutines. The pytest plugin has the fixtures `share_broker`,
`share_topic` and `share_group`. docs/testing.md explains everything.
"""

from barnabas.testing.async_broker import AsyncBroker
from barnabas.testing.broker import Broker
from barnabas.testing.clock import Clock
from barnabas.testing.control import ControlError
from barnabas.testing.faults import Fault, Faults
from barnabas.testing.process import BrokerDied
from barnabas.testing.records import TopicRecord
from barnabas.testing.share_state import RecordState

__all__ = [
    "AsyncBroker",
    "Broker",
    "BrokerDied",
    "Clock",
    "ControlError",
    "Fault",
    "Faults",
    "RecordState",
    "TopicRecord",
]
