"""The versions of each API that Apache Kafka 4.4.0 offers to clients in ApiVersions.

Without Produce 0 to 2, which it lists but cannot read, and without APIs that Barnabas serves in no version.
"""

from collections.abc import Mapping
from typing import Final

KAFKA_VERSIONS: Final = {
    "produce": range(3, 14),
    "fetch": range(4, 19),
    "list_offsets": range(1, 12),
    "metadata": range(14),
    "offset_commit": range(2, 11),
    "offset_fetch": range(1, 11),
    "find_coordinator": range(7),
    "join_group": range(10),
    "heartbeat": range(5),
    "leave_group": range(6),
    "sync_group": range(6),
    "describe_groups": range(7),
    "list_groups": range(6),
    "api_versions": range(6),
    "create_topics": range(2, 8),
    "delete_topics": range(1, 7),
    "delete_records": range(3),
    "init_producer_id": range(6),
    "offset_for_leader_epoch": range(2, 5),
    "add_partitions_to_txn": range(6),
    "add_offsets_to_txn": range(5),
    "end_txn": range(6),
    "write_txn_markers": range(1, 3),
    "txn_offset_commit": range(7),
    "describe_acls": range(1, 4),
    "create_acls": range(1, 4),
    "delete_acls": range(1, 4),
    "describe_configs": range(1, 5),
    "alter_configs": range(3),
    "describe_log_dirs": range(1, 6),
    "create_partitions": range(4),
    "delete_groups": range(4),
    "elect_leaders": range(3),
    "incremental_alter_configs": range(2),
    "alter_partition_reassignments": range(2),
    "list_partition_reassignments": range(1),
    "offset_delete": range(1),
    "describe_client_quotas": range(2),
    "alter_client_quotas": range(2),
    "describe_user_scram_credentials": range(1),
    "alter_user_scram_credentials": range(1),
    "describe_quorum": range(3),
    "update_features": range(3),
    "describe_cluster": range(3),
    "describe_producers": range(1),
    "describe_transactions": range(1),
    "list_transactions": range(3),
    "consumer_group_heartbeat": range(2),
    "consumer_group_describe": range(2),
    "list_config_resources": range(2),
    "describe_topic_partitions": range(1),
    "share_group_heartbeat": range(1, 2),
    "share_group_describe": range(1, 2),
    "share_fetch": range(1, 3),
    "share_acknowledge": range(1, 3),
    "initialize_share_group_state": range(1),
    "read_share_group_state": range(1),
    "write_share_group_state": range(2),
    "delete_share_group_state": range(1),
    "read_share_group_state_summary": range(2),
    "describe_share_group_offsets": range(2),
    "alter_share_group_offsets": range(1),
    "delete_share_group_offsets": range(1),
}

ADDED_BY_4_4: Final[Mapping[str, int]] = {"api_versions": 5, "txn_offset_commit": 6, "delete_groups": 3}
"""The versions that Apache Kafka 4.3.1 does not have."""


def newest(api: str) -> int:
    return KAFKA_VERSIONS[api].stop - 1
