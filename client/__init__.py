"""The asyncio share consumer: `ShareConsumer`, its records and its errors.

Works with Barnabas and with Apache Kafka 4.2 or later. Guide: docs/asyncio-client.md.
"""

from barnabas.client.errors import (
    AcknowledgeError,
    AuthenticationError,
    BrokerError,
    BrokerUnavailableError,
    ConsumerClosedError,
    ConsumerError,
    GroupAuthorizationError,
    GroupFullError,
    MisuseError,
    NotAShareGroupError,
    SecurityError,
    SecurityOptionError,
    TopicAuthorizationError,
    UnsupportedBrokerError,
)
from barnabas.client.record import Outcome, ShareRecord
from barnabas.client.security import Security, parse_security
from barnabas.client.share_consumer import ShareConsumer
from barnabas.client.topic_partition import TopicPartition

__all__ = [
    "AcknowledgeError",
    "AuthenticationError",
    "BrokerError",
    "BrokerUnavailableError",
    "ConsumerClosedError",
    "ConsumerError",
    "GroupAuthorizationError",
    "GroupFullError",
    "MisuseError",
    "NotAShareGroupError",
    "Outcome",
    "Security",
    "SecurityError",
    "SecurityOptionError",
    "ShareConsumer",
    "ShareRecord",
    "TopicAuthorizationError",
    "TopicPartition",
    "UnsupportedBrokerError",
    "parse_security",
]
