"""All controls of one broker for tests, as operations with values of JSON. The HTTP interface calls them.

docs/testing.md has the paths, the fields and the errors for programs in other languages.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from barnabas.broker.network.server import Server
from barnabas.broker.testing import reading
from barnabas.broker.testing.clock_control import ADVANCE_MS_MAX, ClockControl
from barnabas.broker.testing.fault_plans import read_plan, shown_plan
from barnabas.broker.testing.faults import FAULTS_MAX, Fault, Faults, TooManyFaults
from barnabas.broker.testing.fields import Fields, Refused
from barnabas.broker.testing.reset import reset
from barnabas.coordinator.metadata.config_decisions import Operation, ResourceChange, SettingChange
from barnabas.coordinator.metadata.image import ConfigResource, ResourceType
from barnabas.coordinator.metadata.topic_decisions import NewTopic
from barnabas.protocol.record_inspection import Wait
from barnabas.protocol.records import Record

if TYPE_CHECKING:
    from barnabas.broker.node.broker import Broker

PARTITIONS_MAX: Final = 1_000
"""The most partitions of a topic that is created here."""

Json: TypeAlias = Mapping[str, object]


class Controls:
    """The operations. They raise Refused for wrong input, or ApiError or StorageError of the broker."""

    def __init__(self, broker: Broker, server: Server, clock: ClockControl, faults: Faults) -> None:
        self._broker = broker
        self._server = server
        self._clock = clock
        self._faults = faults

    async def advance(self, given: Fields) -> Json:
        """`ms`, and `sessions`: whether the sessions of connected members may end."""
        duration_ms = given.integer("ms", least=0, most=ADVANCE_MS_MAX)
        end_sessions = given.flag("sessions")
        given.check_all_known()
        await self._clock.advance(duration_ms, self._broker.groups, end_sessions=end_sessions)
        return self.time()

    def time(self) -> Json:
        """The broker's wall-clock time, and the milliseconds by which it is ahead of the system's."""
        return {"wall_ms": self._broker.clock.wall_ms(), "ahead_ms": self._clock.ahead_ms}

    async def reset(self) -> Json:
        """Remove all topics and groups, and disconnect all clients."""
        await reset(self._broker, self._server)
        return {}

    async def create_topic(self, given: Fields) -> Json:
        """`name`, and `partitions` and `configs`, as an administrator's client would do it."""
        name = given.text("name")
        partitions = (
            given.integer("partitions", least=1, most=PARTITIONS_MAX) if given.has("partitions") else 1
        )
        configs = given.texts("configs")
        given.check_all_known()
        (creation,) = await self._broker.metadata.create_topics([NewTopic(name, partitions, configs=configs)])
        if creation.error is not None:
            raise Refused(f"The topic {name} was not created: {creation.error}")
        return {"topic_id": str(creation.topic_id)}

    async def configure_group(self, group_id: str, given: Fields) -> Json:
        """`configs`: settings of the group, which need not exist."""
        configs = given.texts("configs")
        given.check_all_known()
        changes = [SettingChange(name, Operation.SET, value) for name, value in configs.items()]
        change = ResourceChange(ConfigResource(ResourceType.GROUP, group_id), changes)
        (error,) = await self._broker.metadata.alter_configs([change])
        if error is not None:
            raise Refused(f"The settings of group {group_id} were not changed: {error}")
        return {}

    def add_fault(self, given: Fields) -> Json:
        """`kind`, and the fields of a plan."""
        plan = read_plan(given)
        given.check_all_known()
        try:
            return _shown(self._faults.add(plan))
        except TooManyFaults:
            raise Refused(f"There are {FAULTS_MAX} faults already. Remove some.") from None

    def list_faults(self) -> Json:
        """All faults that were not removed."""
        return {"faults": [_shown(fault) for fault in self._faults]}

    def remove_fault(self, fault_id: int) -> Json:
        """End one fault; shows it with its hits."""
        fault = self._faults.remove(fault_id)
        if fault is None:
            raise Refused(f"There is no fault {fault_id}.", is_missing=True)
        return _shown(fault)

    def clear_faults(self) -> Json:
        """End all faults."""
        self._faults.clear()
        return {}

    async def records(self, topic_name: str, partition: int, offset: int) -> Json:
        """One page of a partition's committed records; `partitions` is the number of the topic's."""
        topic = reading.find_topic(self._broker, topic_name)
        if not 0 <= partition < len(topic.partitions):
            raise Refused(
                f"{topic_name} has no partition {partition}, only {len(topic.partitions)}.", is_missing=True
            )
        page = await reading.read_page(self._broker, topic, partition, offset)
        return {
            "partitions": len(topic.partitions),
            "records": [_shown_record(record) for record in page.records],
            "next_offset": page.next_offset,
        }

    async def share_state(self, group_id: str) -> Json:
        """The states of all records in the partitions that a share group reads, range by range."""
        ranges = await reading.share_ranges(self._broker, group_id)
        return {"ranges": [self._shown_range(share_range) for share_range in ranges]}

    def _shown_range(self, share_range: reading.ShareRange) -> Json:
        inspected = share_range.inspected
        holds = inspected.owner is not None
        left_ms = max(inspected.lock_deadline_ms - self._broker.clock.monotonic_ms(), 0) if holds else None
        return {
            "topic": share_range.topic,
            "partition": share_range.partition,
            "first_offset": inspected.first_offset,
            "last_offset": inspected.last_offset,
            "state": inspected.state.name.lower(),
            "deliveries": inspected.delivery_count,
            "wait": None if inspected.wait is Wait.NOTHING else inspected.wait.name.lower(),
            "member": inspected.owner,
            "lock_left_ms": left_ms,
        }


def _shown(fault: Fault) -> Json:
    return {"id": fault.fault_id, "hits": fault.hits, **shown_plan(fault.plan)}


def _shown_record(record: Record) -> Json:
    return {
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        "key": _text(record.key),
        "value": _text(record.value),
        "headers": [[key, _text(value)] for key, value in record.headers],
    }


def _text(data: bytes | None) -> str | None:
    """Bytes in base64."""
    return None if data is None else base64.b64encode(data).decode()
