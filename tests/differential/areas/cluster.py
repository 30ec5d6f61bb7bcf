"""The requests of tools about a cluster and their changes: quotas, credentials, ACLs, features, the quorum,
log directories, leaders and reassignments, the coordinators, the versions.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from tests.differential.stage import Stage
from tests.differential.versions import KAFKA_VERSIONS

_STEPS = 16
_UNUSED_PRODUCER_ID = 2**60


class _Cluster:
    """One topic, and names that no other history uses."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.chance = stage.chance
        self.topic = stage.name("t")
        self.nothing = stage.name("nothing")
        self.user = stage.name("user")
        self.client = stage.name("client")

    def steps(self) -> dict[Callable[[], Awaitable[Any]], int]:
        """The possible next steps, with their weights."""
        return {
            self.alter_quotas: 3,
            self.describe_quotas: 3,
            self.alter_credentials: 2,
            self.describe_credentials: 2,
            self.acls: 2,
            self.describe_quorum: 1,
            self.update_features: 2,
            self.elect_leaders: 2,
            self.reassign: 2,
            self.list_reassignments: 1,
            self.describe_log_dirs: 1,
            self.describe_cluster: 1,
            self.find_coordinator: 2,
            self.api_versions: 1,
            self.list_groups: 1,
            self.list_transactions: 1,
            self.write_markers: 1,
            self.fetch_snapshot: 1,
        }

    def version(self, api: str, minimum: int = 0) -> int:
        return self.chance.choice([one for one in KAFKA_VERSIONS[api] if one >= minimum])

    async def ask(self, api: str, minimum: int = 0, **values: Any) -> None:
        await self.stage.ask(0, api, self.version(api, minimum), **values)

    # Quotas.

    def entity(self) -> list[dict[str, Any]]:
        return self.chance.choice(
            [
                [{"entity_type": "client-id", "entity_name": self.client}],
                [{"entity_type": "user", "entity_name": self.user}],
                [
                    {"entity_type": "user", "entity_name": self.user},
                    {"entity_type": "client-id", "entity_name": self.client},
                ],
                [{"entity_type": "ip", "entity_name": "203.0.113.7"}],
                [{"entity_type": "unheard-of", "entity_name": "x"}],
                [{"entity_type": "user", "entity_name": ""}],
                [],
            ]
        )

    async def alter_quotas(self) -> None:
        ops = self.chance.choice(
            [
                [{"key": "producer_byte_rate", "value": 1e9, "remove": False}],
                [{"key": "consumer_byte_rate", "value": 2.5e9, "remove": False}],
                [{"key": "request_percentage", "value": 5000.0, "remove": False}],
                [{"key": "producer_byte_rate", "value": 0.0, "remove": True}],
                [{"key": "no_such_quota", "value": 1.0, "remove": False}],
                [{"key": "producer_byte_rate", "value": -1.0, "remove": False}],
                [{"key": "producer_byte_rate", "value": 1.5, "remove": False}],
                [{"key": "connection_creation_rate", "value": 1e6, "remove": False}],
            ]
        )
        entries = [{"entity": self.entity(), "ops": ops}]
        await self.ask("alter_client_quotas", entries=entries, validate_only=self.chance.random() < 0.2)
        await self.stage.settle()

    async def describe_quotas(self) -> None:
        client = {"entity_type": "client-id", "match_type": 0, "match": self.client}
        user = {"entity_type": "user", "match_type": 0, "match": self.user}
        components = self.chance.choice(
            [
                [client],
                [user],
                [user, client],
                [user, {"entity_type": "client-id", "match_type": 2, "match": None}],
                [client, client],
                [{"entity_type": "unheard-of", "match_type": 0, "match": "x"}],
                [{"entity_type": "user", "match_type": 7, "match": None}],
                [{"entity_type": "user", "match_type": 0, "match": None}],
            ]
        )
        strict = self.chance.random() < 0.5
        await self.ask("describe_client_quotas", components=components, strict=strict)

    # Credentials.

    async def alter_credentials(self) -> None:
        upsertion = {
            "name": self.chance.choice([self.user, self.user, ""]),
            "mechanism": self.chance.choice([1, 2, 0, 9]),
            "iterations": self.chance.choice([4096, 8192, 100, 100_000]),
            "salt": b"salt",
            "salted_password": b"password",
        }
        deletion = {"name": self.user, "mechanism": self.chance.choice([1, 2])}
        upsertions, deletions = self.chance.choice(
            [([upsertion], []), ([upsertion], []), ([], [deletion]), ([upsertion], [deletion])]
        )
        await self.ask("alter_user_scram_credentials", deletions=deletions, upsertions=upsertions)
        await self.stage.settle()

    async def describe_credentials(self) -> None:
        names = self.chance.choice([[self.user], [self.user, self.nothing], [self.user, self.user], [""]])
        await self.ask("describe_user_scram_credentials", users=[{"name": name} for name in names])

    # ACLs.

    async def acls(self) -> None:
        """Neither broker has an authorizer."""
        wanted: dict[str, Any] = {
            "resource_type_filter": self.chance.choice([1, 2, 77]),
            "resource_name_filter": self.chance.choice([None, self.topic, ""]),
            "pattern_type_filter": self.chance.choice([1, 2, 3, 4]),
            "principal_filter": None,
            "host_filter": "*",
            "operation": self.chance.choice([1, 3]),
            "permission_type": self.chance.choice([1, 3]),
        }
        creation = {
            "resource_type": self.chance.choice([2, 4]),
            "resource_name": self.topic,
            "resource_pattern_type": 3,
            "principal": f"User:{self.user}",
            "host": "*",
            "operation": 3,
            "permission_type": 3,
        }
        count = self.chance.choice([0, 1, 2])
        api = self.chance.choice(["describe_acls", "create_acls", "delete_acls"])
        await self.ask(api, **wanted, creations=[creation] * count, filters=[wanted] * count)

    # The cluster.

    async def describe_quorum(self) -> None:
        name, partition = self.chance.choice([("__cluster_metadata", 1), (self.topic, 0)])
        topics = [{"topic_name": name, "partitions": [{"partition_index": partition}]}]
        await self.ask("describe_quorum", topics=topics)

    async def update_features(self) -> None:
        update = self.chance.choice(
            [
                {"feature": "no.such.feature", "max_version_level": 1},
                {"feature": "transaction.version", "max_version_level": 9},
                {"feature": "group.version", "max_version_level": 1},
                {"feature": "share.version", "max_version_level": -1},
                {"feature": "group.version", "max_version_level": 0, "upgrade_type": 1},
                {"feature": "group.version", "max_version_level": 0, "upgrade_type": 2},
            ]
        )
        updates = [{"upgrade_type": 1, "allow_downgrade": False, **update}]
        await self.ask("update_features", 1, feature_updates=updates, validate_only=True, timeout=10_000)

    async def elect_leaders(self) -> None:
        topics = [
            {"topic": self.topic, "partitions": [0, 9]},
            {"topic": self.nothing, "partitions": [0]},
        ]
        await self.ask(
            "elect_leaders",
            election_type=self.chance.choice([0, 1, 7]),
            topic_partitions=topics[: self.chance.choice([1, 2])],
            timeout=10_000,
        )

    async def reassign(self) -> None:
        replicas = self.chance.choice([[1], [2], [1, 2], [1, 1], [], None])
        partitions = [{"partition_index": index, "replicas": replicas} for index in (0, 9)]
        name = self.chance.choice([self.topic, self.topic, self.nothing])
        await self.ask(
            "alter_partition_reassignments",
            timeout=10_000,
            allow_replication_factor_change=self.chance.random() < 0.7,
            topics=[{"name": name, "partitions": partitions}],
        )

    async def list_reassignments(self) -> None:
        topics = [{"name": self.topic, "partition_indexes": [0, 9]}]
        await self.ask("list_partition_reassignments", timeout=10_000, topics=topics)

    async def describe_log_dirs(self) -> None:
        await self.ask("describe_log_dirs", topics=[{"topic": self.topic, "partitions": [0, 9]}])

    async def describe_cluster(self) -> None:
        await self.ask(
            "describe_cluster",
            include_cluster_authorized_operations=self.chance.random() < 0.5,
            endpoint_type=self.chance.choice([1, 1, 2, 3]),
            include_fenced_brokers=False,
        )

    async def find_coordinator(self) -> None:
        version, key = self.version("find_coordinator"), self.stage.name("g")
        key_type = self.chance.choice([0, 0, 1, 2, 5]) if version >= 1 else 0
        await self.stage.ask(
            0, "find_coordinator", version, key=key, key_type=key_type, coordinator_keys=[key]
        )

    async def api_versions(self) -> None:
        meant = self.chance.choice([(None, -1), (None, -1), ("another", 1), (None, 1), ("another", -1)])
        await self.ask(
            "api_versions",
            client_software_name="a-client",
            client_software_version="1.0",
            cluster_id=meant[0],
            node_id=meant[1],
        )

    async def list_groups(self) -> None:
        """Groups that cannot exist: other histories have groups of their own."""
        await self.ask("list_groups", 4, states_filter=["Nonsense"], types_filter=[])

    async def list_transactions(self) -> None:
        await self.ask(
            "list_transactions",
            state_filters=self.chance.choice([[], ["Ongoing"], ["Nonsense"]]),
            producer_id_filters=[_UNUSED_PRODUCER_ID],
            duration_filter=self.chance.choice([-1, 1000]),
            transactional_id_pattern=self.chance.choice([None, "x.*", "("]),
        )

    async def write_markers(self) -> None:
        marker = {
            "producer_id": _UNUSED_PRODUCER_ID,
            "producer_epoch": 0,
            "transaction_result": False,
            "coordinator_epoch": 0,
            "topics": [{"name": self.nothing, "partition_indexes": [0]}],
            "transaction_version": 0,
        }
        await self.ask("write_txn_markers", markers=[marker])

    async def fetch_snapshot(self) -> None:
        """Brokers send this request to controllers only: the connection is closed."""
        wanted = {
            "partition": 0,
            "current_leader_epoch": 1,
            "snapshot_id": {"end_offset": 5, "epoch": 1},
            "position": 0,
        }
        topics = [{"name": "__cluster_metadata", "partitions": [wanted]}]
        version = self.chance.choice([0, 1])
        await self.stage.ask(1, "fetch_snapshot", version, replica_id=7, max_bytes=1_000, topics=topics)


async def play(stage: Stage) -> None:
    await stage.create_topic("t")
    cluster = _Cluster(stage)
    steps = cluster.steps()
    for step in stage.chance.choices(list(steps), weights=list(steps.values()), k=_STEPS):
        await step()
