"""The asyncio share consumer: `ShareConsumer`, its records, and what it raises.

Works against Barnabas and Apache Kafka 4.2 or later. How to use it: docs/asyncio-client.md.
"""

from barnabas.client.consumer_parts import TopicPartition
from barnabas.client.errors import (
    AcknowledgeError,
    BrokerError,
    BrokerUnavailableError,
    ConsumerClosedError,
    ConsumerError,
    GroupAuthorizationError,
    GroupFullError,
    MisuseError,
    NotAShareGroupError,
    TopicAuthorizationError,
    UnsupportedBrokerError,
)
from barnabas.client.record import Outcome, ShareRecord
from barnabas.client.share_consumer import ShareConsumer

__all__ = [
    "AcknowledgeError",
    "BrokerError",
    "BrokerUnavailableError",
    "ConsumerClosedError",
    "ConsumerError",
    "GroupAuthorizationError",
    "GroupFullError",
    "MisuseError",
    "NotAShareGroupError",
    "Outcome",
    "ShareConsumer",
    "ShareRecord",
    "TopicAuthorizationError",
    "TopicPartition",
    "UnsupportedBrokerError",
]
