"""The asyncio clients, with their records and errors: `Consumer`, `Producer`, `ShareConsumer` and
`ShareGroupAdmin`.

They work with Barnabas and with Apache Kafka: share groups need Kafka 4.2, the others 4.0 or later. Guide:
docs/asyncio-client.md.
"""

from barnabas.client.consume.consumer_record import ConsumerRecord
from barnabas.client.consume.rebalance_listener import RebalanceListener
from barnabas.client.consumer import Consumer
from barnabas.client.errors import (
    AcknowledgeError,
    AuthenticationError,
    BrokerError,
    BrokerUnavailableError,
    CommitFailedError,
    ConsumerClosedError,
    ConsumerError,
    GroupAuthorizationError,
    GroupFullError,
    MisuseError,
    NoOffsetError,
    NotAShareGroupError,
    ProduceError,
    ProducerFencedError,
    SecurityError,
    SecurityOptionError,
    TopicAuthorizationError,
    TopicGoneError,
    TransactionAbortedError,
    UnknownTopicError,
    UnreadableRecordError,
    UnsupportedBrokerError,
    WakeupError,
)
from barnabas.client.group_offsets import CommittedOffset, GroupMetadata
from barnabas.client.group_ranges import TakenRanges
from barnabas.client.produce.record_queue import RecordMetadata
from barnabas.client.producer import Producer
from barnabas.client.record import Outcome, ShareRecord
from barnabas.client.security import Security, parse_security
from barnabas.client.share_consumer import ShareConsumer
from barnabas.client.share_group_admin import ShareGroupAdmin
from barnabas.client.share_group_offsets import SharePosition
from barnabas.client.topic_partition import TopicPartition
from barnabas.protocol.committed_ranges import OffsetRange

__all__ = [
    "AcknowledgeError",
    "AuthenticationError",
    "BrokerError",
    "BrokerUnavailableError",
    "CommitFailedError",
    "CommittedOffset",
    "Consumer",
    "ConsumerClosedError",
    "ConsumerError",
    "ConsumerRecord",
    "GroupAuthorizationError",
    "GroupFullError",
    "GroupMetadata",
    "MisuseError",
    "NoOffsetError",
    "NotAShareGroupError",
    "OffsetRange",
    "Outcome",
    "ProduceError",
    "Producer",
    "ProducerFencedError",
    "RebalanceListener",
    "RecordMetadata",
    "Security",
    "SecurityError",
    "SecurityOptionError",
    "ShareConsumer",
    "ShareGroupAdmin",
    "SharePosition",
    "ShareRecord",
    "TakenRanges",
    "TopicAuthorizationError",
    "TopicGoneError",
    "TopicPartition",
    "TransactionAbortedError",
    "UnknownTopicError",
    "UnreadableRecordError",
    "UnsupportedBrokerError",
    "WakeupError",
    "parse_security",
]
