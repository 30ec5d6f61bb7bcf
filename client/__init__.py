"""The asyncio clients: `Consumer`, `Producer` and `ShareConsumer`, with their records and errors;
`ShareGroupAdmin`, an administrator of a share group, and `ShareBrowser`, a reader of its records in Barnabas.

They work with Barnabas and with Apache Kafka: share groups need Kafka 4.2, the others 4.0 or later. Guide:
docs/asyncio-client.md. This file is the public interface; the folders have its parts.
"""

from barnabas.client.consume.consumer import Consumer
from barnabas.client.consume.consumer_record import ConsumerRecord
from barnabas.client.consume.rebalance_listener import RebalanceListener
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
    GroupNotFoundError,
    MisuseError,
    NoOffsetError,
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
    WrongGroupTypeError,
)
from barnabas.client.group.offsets import CommittedOffset, GroupMetadata
from barnabas.client.group.ranges import TakenRanges
from barnabas.client.group.share_positions import SharePosition
from barnabas.client.inspect.browsing import BrowsedRecord
from barnabas.client.inspect.record_range import GroupProgress, LastChange, LockHolder, RecordRange
from barnabas.client.inspect.share_browser import ShareBrowser
from barnabas.client.inspect.share_group_admin import ShareGroupAdmin
from barnabas.client.network.security import Security, parse_security
from barnabas.client.produce.producer import Producer
from barnabas.client.produce.record_queue import RecordMetadata
from barnabas.client.share.acknowledgements import AcknowledgeType
from barnabas.client.share.record import Outcome, ShareRecord
from barnabas.client.share.share_consumer import ShareConsumer
from barnabas.client.topic_partition import TopicPartition
from barnabas.protocol.committed_ranges import OffsetRange
from barnabas.protocol.delivery_state import Cause
from barnabas.protocol.record_history import HistoryStep, StepKind
from barnabas.protocol.record_inspection import DescribedState, Wait

__all__ = [
    "AcknowledgeError",
    "AcknowledgeType",
    "AuthenticationError",
    "BrokerError",
    "BrokerUnavailableError",
    "BrowsedRecord",
    "Cause",
    "CommitFailedError",
    "CommittedOffset",
    "Consumer",
    "ConsumerClosedError",
    "ConsumerError",
    "ConsumerRecord",
    "DescribedState",
    "GroupAuthorizationError",
    "GroupFullError",
    "GroupMetadata",
    "GroupNotFoundError",
    "GroupProgress",
    "HistoryStep",
    "LastChange",
    "LockHolder",
    "MisuseError",
    "NoOffsetError",
    "OffsetRange",
    "Outcome",
    "ProduceError",
    "Producer",
    "ProducerFencedError",
    "RebalanceListener",
    "RecordMetadata",
    "RecordRange",
    "Security",
    "SecurityError",
    "SecurityOptionError",
    "ShareBrowser",
    "ShareConsumer",
    "ShareGroupAdmin",
    "SharePosition",
    "ShareRecord",
    "StepKind",
    "TakenRanges",
    "TopicAuthorizationError",
    "TopicGoneError",
    "TopicPartition",
    "TransactionAbortedError",
    "UnknownTopicError",
    "UnreadableRecordError",
    "UnsupportedBrokerError",
    "Wait",
    "WakeupError",
    "WrongGroupTypeError",
    "parse_security",
]
