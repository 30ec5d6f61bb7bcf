"""The numbers of Kafka's APIs and of our own, and the served APIs with their versions (KIP-35, KIP-482).

This is the only list of the served APIs: dispatch, ApiVersions and the codec all read `APIS`. kio knows the
layout of a message in each version (`codec`); the handlers implement the APIs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final, NamedTuple


class ApiKey(IntEnum):
    """Every API with a number in Kafka 4.4, served or not, and the APIs that only Barnabas has, from 10000 on
    (docs/protocol.md)."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    LEADER_AND_ISR = 4
    STOP_REPLICA = 5
    UPDATE_METADATA = 6
    CONTROLLED_SHUTDOWN = 7
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    CREATE_DELEGATION_TOKEN = 38
    RENEW_DELEGATION_TOKEN = 39
    EXPIRE_DELEGATION_TOKEN = 40
    DESCRIBE_DELEGATION_TOKEN = 41
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    VOTE = 52
    BEGIN_QUORUM_EPOCH = 53
    END_QUORUM_EPOCH = 54
    DESCRIBE_QUORUM = 55
    ALTER_PARTITION = 56
    UPDATE_FEATURES = 57
    ENVELOPE = 58
    FETCH_SNAPSHOT = 59
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    BROKER_REGISTRATION = 62
    BROKER_HEARTBEAT = 63
    UNREGISTER_BROKER = 64
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    ALLOCATE_PRODUCER_IDS = 67
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    CONTROLLER_REGISTRATION = 70
    GET_TELEMETRY_SUBSCRIPTIONS = 71
    PUSH_TELEMETRY = 72
    ASSIGN_REPLICAS_TO_DIRS = 73
    LIST_CONFIG_RESOURCES = 74
    DESCRIBE_TOPIC_PARTITIONS = 75
    SHARE_GROUP_HEARTBEAT = 76
    SHARE_GROUP_DESCRIBE = 77
    SHARE_FETCH = 78
    SHARE_ACKNOWLEDGE = 79
    ADD_RAFT_VOTER = 80
    REMOVE_RAFT_VOTER = 81
    UPDATE_RAFT_VOTER = 82
    INITIALIZE_SHARE_GROUP_STATE = 83
    READ_SHARE_GROUP_STATE = 84
    WRITE_SHARE_GROUP_STATE = 85
    DELETE_SHARE_GROUP_STATE = 86
    READ_SHARE_GROUP_STATE_SUMMARY = 87
    STREAMS_GROUP_HEARTBEAT = 88
    STREAMS_GROUP_DESCRIBE = 89
    DESCRIBE_SHARE_GROUP_OFFSETS = 90
    ALTER_SHARE_GROUP_OFFSETS = 91
    DELETE_SHARE_GROUP_OFFSETS = 92
    STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE = 93
    UNREGISTER_CONTROLLER = 94
    DESCRIBE_SHARE_RECORDS = 10_000
    ALTER_SHARE_RECORDS = 10_001
    DESCRIBE_SHARE_RECORD_HISTORY = 10_002


class ApiSpec(NamedTuple):
    """One served API: all versions from `min_version` to `max_version`, both inclusive."""

    key: ApiKey
    name: str
    """The API's name as in module names, such as `share_fetch`."""
    min_version: int
    max_version: int
    flexible_version: int
    """From this version on, headers and bodies have compact lengths and tagged fields."""
    advertised_min: int
    """The lowest version that ApiVersions names."""
    inter_broker: bool = False
    """Whether only the listener for brokers serves it."""

    def serves(self, version: int) -> bool:
        return self.min_version <= version <= self.max_version


def _served(
    key: ApiKey,
    min_version: int,
    max_version: int,
    flexible_version: int,
    *,
    advertised_min: int | None = None,
    inter_broker: bool = False,
) -> ApiSpec:
    return ApiSpec(
        key,
        key.name.lower(),
        min_version,
        max_version,
        flexible_version,
        advertised_min=min_version if advertised_min is None else advertised_min,
        inter_broker=inter_broker,
    )


APIS: Final[Mapping[ApiKey, ApiSpec]] = MappingProxyType(
    {
        spec.key: spec
        for spec in (
            # Versions 0 to 2 cannot be parsed. They are advertised, as in Kafka, because librdkafka otherwise
            # believes that the broker is too old for Produce (KAFKA-18659).
            _served(ApiKey.PRODUCE, 3, 13, flexible_version=9, advertised_min=0),
            _served(ApiKey.FETCH, 4, 18, flexible_version=12),
            _served(ApiKey.LIST_OFFSETS, 1, 11, flexible_version=6),
            _served(ApiKey.METADATA, 0, 13, flexible_version=9),
            _served(ApiKey.OFFSET_COMMIT, 2, 10, flexible_version=8),
            _served(ApiKey.OFFSET_FETCH, 1, 10, flexible_version=6),
            _served(ApiKey.FIND_COORDINATOR, 0, 6, flexible_version=3),
            _served(ApiKey.JOIN_GROUP, 0, 9, flexible_version=6),
            _served(ApiKey.HEARTBEAT, 0, 4, flexible_version=4),
            _served(ApiKey.LEAVE_GROUP, 0, 5, flexible_version=4),
            _served(ApiKey.SYNC_GROUP, 0, 5, flexible_version=4),
            _served(ApiKey.DESCRIBE_GROUPS, 0, 6, flexible_version=5),
            _served(ApiKey.LIST_GROUPS, 0, 5, flexible_version=3),
            _served(ApiKey.SASL_HANDSHAKE, 0, 1, flexible_version=2),
            _served(ApiKey.API_VERSIONS, 0, 5, flexible_version=3),
            _served(ApiKey.CREATE_TOPICS, 2, 7, flexible_version=5),
            _served(ApiKey.DELETE_TOPICS, 1, 6, flexible_version=4),
            _served(ApiKey.DELETE_RECORDS, 0, 2, flexible_version=2),
            _served(ApiKey.INIT_PRODUCER_ID, 0, 5, flexible_version=2),
            _served(ApiKey.OFFSET_FOR_LEADER_EPOCH, 2, 4, flexible_version=4),
            _served(ApiKey.ADD_PARTITIONS_TO_TXN, 0, 5, flexible_version=3),
            _served(ApiKey.ADD_OFFSETS_TO_TXN, 0, 4, flexible_version=3),
            _served(ApiKey.END_TXN, 0, 5, flexible_version=3),
            _served(ApiKey.WRITE_TXN_MARKERS, 1, 2, flexible_version=1),
            _served(ApiKey.TXN_OFFSET_COMMIT, 0, 6, flexible_version=3),
            _served(ApiKey.DESCRIBE_ACLS, 1, 3, flexible_version=2),
            _served(ApiKey.CREATE_ACLS, 1, 3, flexible_version=2),
            _served(ApiKey.DELETE_ACLS, 1, 3, flexible_version=2),
            _served(ApiKey.DESCRIBE_CONFIGS, 1, 4, flexible_version=4),
            _served(ApiKey.ALTER_CONFIGS, 0, 2, flexible_version=2),
            _served(ApiKey.DESCRIBE_LOG_DIRS, 1, 5, flexible_version=2),
            _served(ApiKey.SASL_AUTHENTICATE, 0, 2, flexible_version=2),
            _served(ApiKey.CREATE_PARTITIONS, 0, 3, flexible_version=2),
            _served(ApiKey.DELETE_GROUPS, 0, 3, flexible_version=2),
            _served(ApiKey.ELECT_LEADERS, 0, 2, flexible_version=2),
            _served(ApiKey.INCREMENTAL_ALTER_CONFIGS, 0, 1, flexible_version=1),
            _served(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, 1, flexible_version=0),
            _served(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, 0, flexible_version=0),
            _served(ApiKey.OFFSET_DELETE, 0, 0, flexible_version=1),
            _served(ApiKey.DESCRIBE_CLIENT_QUOTAS, 0, 1, flexible_version=1),
            _served(ApiKey.ALTER_CLIENT_QUOTAS, 0, 1, flexible_version=1),
            _served(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, 0, flexible_version=0),
            _served(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, 0, flexible_version=0),
            _served(ApiKey.DESCRIBE_QUORUM, 0, 2, flexible_version=0),
            _served(ApiKey.UPDATE_FEATURES, 0, 2, flexible_version=0),
            _served(ApiKey.FETCH_SNAPSHOT, 0, 1, flexible_version=0, inter_broker=True),
            _served(ApiKey.DESCRIBE_CLUSTER, 0, 2, flexible_version=0),
            _served(ApiKey.DESCRIBE_PRODUCERS, 0, 0, flexible_version=0),
            _served(ApiKey.DESCRIBE_TRANSACTIONS, 0, 0, flexible_version=0),
            _served(ApiKey.LIST_TRANSACTIONS, 0, 2, flexible_version=0),
            _served(ApiKey.CONSUMER_GROUP_HEARTBEAT, 0, 1, flexible_version=0),
            _served(ApiKey.CONSUMER_GROUP_DESCRIBE, 0, 1, flexible_version=0),
            _served(ApiKey.LIST_CONFIG_RESOURCES, 0, 1, flexible_version=0),
            _served(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, 0, flexible_version=0),
            _served(ApiKey.SHARE_GROUP_HEARTBEAT, 1, 1, flexible_version=0),
            _served(ApiKey.SHARE_GROUP_DESCRIBE, 1, 1, flexible_version=0),
            _served(ApiKey.SHARE_FETCH, 1, 2, flexible_version=0),
            _served(ApiKey.SHARE_ACKNOWLEDGE, 1, 2, flexible_version=0),
            _served(ApiKey.INITIALIZE_SHARE_GROUP_STATE, 0, 0, flexible_version=0, inter_broker=True),
            _served(ApiKey.READ_SHARE_GROUP_STATE, 0, 0, flexible_version=0, inter_broker=True),
            _served(ApiKey.WRITE_SHARE_GROUP_STATE, 0, 1, flexible_version=0, inter_broker=True),
            _served(ApiKey.DELETE_SHARE_GROUP_STATE, 0, 0, flexible_version=0, inter_broker=True),
            _served(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, 0, 1, flexible_version=0, inter_broker=True),
            _served(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 0, 1, flexible_version=0),
            _served(ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, 0, flexible_version=0),
            _served(ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, 0, flexible_version=0),
            _served(ApiKey.DESCRIBE_SHARE_RECORDS, 0, 0, flexible_version=0),
            _served(ApiKey.ALTER_SHARE_RECORDS, 0, 0, flexible_version=0),
            _served(ApiKey.DESCRIBE_SHARE_RECORD_HISTORY, 0, 0, flexible_version=0),
        )
    }
)
"""The served APIs, in the order of the keys."""

_APIS_BY_NUMBER: Final[Mapping[int, ApiSpec]] = {int(key): spec for key, spec in APIS.items()}


find_api: Final[Callable[[int], ApiSpec | None]] = _APIS_BY_NUMBER.get
"""The API with this key from the wire, or None if it is not served."""
