"""The administrative requests of a query about its group: settings before it joins, start offsets, lag.

Settings are read first and changed only if they differ. So a query without the right to alter the group can
still name the settings that it needs. Start offsets and lag come from the group's coordinator (KIP-932,
KIP-1226).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.describe_share_group_offsets.v1.request import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from kio.schema.describe_share_group_offsets.v1.response import DescribeShareGroupOffsetsResponse
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.errors import BrokerUnavailableError, broker_error
from barnabas.client.network.connection import Connection
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.share_source.ledger import UNKNOWN_OFFSET
from barnabas.pipeline.share_source.metrics import UNKNOWN_LAG
from barnabas.protocol.client.admin_apis import (
    DESCRIBE_CONFIGS,
    DESCRIBE_SHARE_GROUP_OFFSETS,
    INCREMENTAL_ALTER_CONFIGS,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.primitive import GroupId, TopicName, i8, i32

RECORD_LOCKS: Final = "share.partition.max.record.locks"

_BOUNDS: Final = {
    RECORD_LOCKS: "recordLocks: the broker's group.share.max.partition.max.record.locks is the most that a "
    "group may have; raise it there, or ask for less."
}
"""By setting, the advice if a broker refuses its value."""
_GROUP_RESOURCE: Final = i8(32)
_SET: Final = i8(0)
_DELIVERY_COUNT_MAX: Final = "share.delivery.count.limit"


class GroupPosition(NamedTuple):
    """The group's position in a partition: its SPSO, -1 if it has none yet, and the number of records that it
    is not done with, -1 if that isn't known."""

    start_offset: int = UNKNOWN_OFFSET
    lag: int = UNKNOWN_LAG


class GroupAdmin:
    """The administrator's side of one group. `close` it once; the cluster stays open."""

    def __init__(self, cluster: Cluster, group_id: str) -> None:
        self._cluster = cluster
        self._group_id = group_id
        self._coordinator: Connection | None = None

    def close(self) -> None:
        if self._coordinator is not None:
            self._coordinator.close()

    async def ensure_settings(self, wanted: Mapping[str, str]) -> None:
        """Changes the group's settings to these, by their full names.

        Raises `PipelineError` if the broker refuses, and `BrokerUnavailableError`.
        """
        if not wanted:
            return
        found = await self._settings(list(wanted))
        changes = {name: value for name, value in wanted.items() if found.get(name) != value}
        if changes:
            await self._change_settings(changes)

    async def delivery_count_max(self) -> int | None:
        """The group's delivery limit; None if the broker doesn't report it.

        Raises `BrokerUnavailableError`.
        """
        value = (await self._settings([_DELIVERY_COUNT_MAX])).get(_DELIVERY_COUNT_MAX)
        return int(value) if value is not None and value.isdecimal() else None

    async def positions(
        self, topics: Mapping[str, Collection[TopicIdPartition]]
    ) -> dict[TopicIdPartition, GroupPosition]:
        """By partition, the group's position; `topics` are by name. Unknown positions are left out.

        If the group does not exist, each partition has no start offset and an unknown lag. Raises
        `BrokerUnavailableError` for a temporary error, `BrokerError` for a permanent one.
        """
        request = DescribeShareGroupOffsetsRequest(
            groups=(
                DescribeShareGroupOffsetsRequestGroup(
                    group_id=GroupId(self._group_id),
                    topics=tuple(
                        DescribeShareGroupOffsetsRequestTopic(
                            topic_name=TopicName(name),
                            partitions=tuple(i32(partition.partition) for partition in sorted(partitions)),
                        )
                        for name, partitions in topics.items()
                    ),
                ),
            )
        )
        connection = await self._connect()
        return self._take_positions(await connection.ask(DESCRIBE_SHARE_GROUP_OFFSETS, request), topics)

    async def _connect(self) -> Connection:
        if self._coordinator is None or not self._coordinator.is_open:
            self._coordinator = await self._cluster.open(await self._cluster.find_coordinator(self._group_id))
        return self._coordinator

    def _take_positions(
        self,
        response: DescribeShareGroupOffsetsResponse,
        topics: Mapping[str, Collection[TopicIdPartition]],
    ) -> dict[TopicIdPartition, GroupPosition]:
        asked = {partition for partitions in topics.values() for partition in partitions}
        positions: dict[TopicIdPartition, GroupPosition] = {}
        for group in response.groups:
            if group.error_code is ErrorCode.group_id_not_found:
                return dict.fromkeys(asked, GroupPosition())
            if group.error_code is not ErrorCode.none:
                self._refuse(group.error_code, group.error_message)
            for topic in group.topics:
                for result in topic.partitions:
                    self._check_passing(result.error_code)
                    # A topic that was deleted and created again has another id: it is not the requested one.
                    if topic.topic_id is None or result.error_code is not ErrorCode.none:
                        continue
                    partition = TopicIdPartition(topic.topic_id, result.partition_index)
                    if partition in asked:
                        positions[partition] = GroupPosition(result.start_offset, result.lag)
        return positions

    def _check_passing(self, code: ErrorCode) -> None:
        """Raises for a temporary error: while a partition's state is loaded, its position is not known."""
        if code.retriable and code is not ErrorCode.unknown_topic_or_partition:
            self._refuse(code, None)

    def _refuse(self, code: ErrorCode, message: str | None) -> None:
        """Raises `BrokerError` for a permanent error, otherwise `BrokerUnavailableError`.

        A temporary error closes the connection, because another broker may coordinate the group now.
        """
        if not code.retriable:
            raise broker_error(code, message)
        if self._coordinator is not None:
            self._coordinator.close()
        raise BrokerUnavailableError(f"The group {self._group_id} cannot be described now: {code.name}.")

    async def _settings(self, names: Sequence[str]) -> dict[str, str | None]:
        resource = DescribeConfigsResource(
            resource_type=_GROUP_RESOURCE, resource_name=self._group_id, configuration_keys=tuple(names)
        )
        response = await self._cluster.ask(DESCRIBE_CONFIGS, DescribeConfigsRequest(resources=(resource,)))
        found: dict[str, str | None] = {}
        for result in response.results:
            if result.error_code is ErrorCode.none:
                found.update((config.name, config.value) for config in result.configs)
        return found

    async def _change_settings(self, changes: Mapping[str, str]) -> None:
        resource = AlterConfigsResource(
            resource_type=_GROUP_RESOURCE,
            resource_name=self._group_id,
            configs=tuple(
                AlterableConfig(name=name, config_operation=_SET, value=value)
                for name, value in changes.items()
            ),
        )
        request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
        response = await self._cluster.ask(INCREMENTAL_ALTER_CONFIGS, request)
        for result in response.responses:
            if result.error_code is not ErrorCode.none:
                said = f": {result.error_message}" if result.error_message else ""
                raise PipelineError(
                    f"The group {self._group_id} cannot be set to "
                    f"{', '.join(f'{name}={value}' for name, value in changes.items())}: "
                    f"{result.error_code.name}{said}."
                    + "".join(f" {hint}" for name, hint in _BOUNDS.items() if name in changes)
                )
