"""A member of a classic group, like Java's consumer: eager, range, regular commits and heartbeats."""

import asyncio
import struct
import time
from collections.abc import Mapping, Sequence

from barnabas.protocol.errors import ErrorCode
from benchmarks.load.context import (
    COMMIT_SECONDS,
    REBALANCE_TIMEOUT_MS,
    Load,
    Topic,
    ask_coordinator,
    check,
    connect_to_coordinator,
)
from benchmarks.load.offsets import commit, starting_positions
from benchmarks.load.partition_reader import PartitionReader
from benchmarks.load.wire import Connection

HEARTBEAT_SECONDS = 3.0
SESSION_TIMEOUT_MS = 45_000
_PROTOCOL_TYPE = "consumer"
_PROTOCOL = "range"
_VERSION_AND_COUNT = struct.Struct(">hi")
_NULL = struct.pack(">i", -1)


class ClassicMember:
    """Reads and commits its partitions until it is cancelled; then call `leave`."""

    def __init__(self, load: Load, group: str, topic: Topic) -> None:
        self._load = load
        self._group = group
        self._topic = topic
        self._member_id = ""
        self._generation = -1
        self._in_rebalance = True

    @property
    def assigned(self) -> frozenset[int]:
        """The partitions that it reads."""
        return frozenset() if self._in_rebalance else frozenset(self._reader.positions)

    async def run(self) -> None:
        self._coordinator = await connect_to_coordinator(self._load.address, self._group)
        self._leader = await Connection.open(self._load.address)
        self._reader = PartitionReader(self._load, self._topic, "classic_delivery", self._leader)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._send_heartbeats())
            tasks.create_task(self._commit_regularly())
            while True:
                await self._join()
                while not self._in_rebalance:
                    await self._reader.poll()
                await self._commit()

    async def leave(self) -> None:
        """Leave the group."""
        await self._coordinator.ask(
            "leave_group", 5, group_id=self._group, members=[{"member_id": self._member_id}]
        )

    async def _send_heartbeats(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_SECONDS)
            if self._in_rebalance:
                continue
            begin = time.perf_counter()
            response = await self._coordinator.ask("heartbeat", 4, **self._identity())
            self._load.samples.note("heartbeat", begin)
            if response.error_code is ErrorCode.rebalance_in_progress:
                self._in_rebalance = True
            else:
                check(response.error_code, "heartbeat")

    async def _commit_regularly(self) -> None:
        while True:
            await asyncio.sleep(COMMIT_SECONDS)
            if not self._in_rebalance:
                await self._commit()

    async def _commit(self) -> None:
        begin = time.perf_counter()
        member = (self._member_id, self._generation)
        await commit(self._coordinator, self._group, self._topic, member, self._reader.positions)
        self._load.samples.note("commit", begin)

    async def _join(self) -> None:
        """Join a generation, and start at the group's committed offsets."""
        assignment = None
        while assignment is None:
            assignment = await self._sync(await self._join_generation())
        indexes = _read_assignment(assignment)
        self._reader.positions = await starting_positions(
            self._coordinator, self._leader, self._group, self._topic, indexes
        )
        self._in_rebalance = False

    async def _join_generation(self) -> Sequence[str]:
        """The member ids if this member is the leader, otherwise an empty list."""
        while True:
            response = await ask_coordinator(
                self._coordinator,
                "join_group",
                9,
                group_id=self._group,
                session_timeout=SESSION_TIMEOUT_MS,
                rebalance_timeout=REBALANCE_TIMEOUT_MS,
                member_id=self._member_id,
                protocol_type=_PROTOCOL_TYPE,
                protocols=[{"name": _PROTOCOL, "metadata": _subscription(self._topic.name)}],
            )
            self._member_id = response.member_id
            if response.error_code is not ErrorCode.member_id_required:
                check(response.error_code, "join_group")
                self._generation = response.generation_id
                return sorted(each.member_id for each in response.members)

    async def _sync(self, members: Sequence[str]) -> bytes | None:
        """The assignment of this member; None if the group is in a rebalance again."""
        assignments = [
            {"member_id": member_id, "assignment": assignment}
            for member_id, assignment in _ranges(self._topic, members).items()
        ]
        response = await self._coordinator.ask(
            "sync_group",
            5,
            **self._identity(),
            protocol_type=_PROTOCOL_TYPE,
            protocol_name=_PROTOCOL,
            assignments=assignments,
        )
        if response.error_code is ErrorCode.rebalance_in_progress:
            return None
        check(response.error_code, "sync_group")
        return bytes(response.assignment)

    def _identity(self) -> dict[str, object]:
        return {
            "group_id": self._group,
            "generation_id": self._generation,
            "member_id": self._member_id,
            "group_instance_id": None,
        }


def _subscription(topic: str) -> bytes:
    return _VERSION_AND_COUNT.pack(0, 1) + _string(topic) + _NULL


def _ranges(topic: Topic, members: Sequence[str]) -> Mapping[str, bytes]:
    """Neighbouring partitions for each member."""
    ranges: dict[str, bytes] = {}
    for number, member_id in enumerate(members):
        first, end = (topic.partition_count * each // len(members) for each in (number, number + 1))
        indexes = struct.pack(f">i{end - first}i", end - first, *range(first, end))
        ranges[member_id] = _VERSION_AND_COUNT.pack(0, 1) + _string(topic.name) + indexes + _NULL
    return ranges


def _read_assignment(assignment: bytes) -> Sequence[int]:
    """The partitions of the only topic."""
    (name_length,) = struct.unpack_from(">h", assignment, _VERSION_AND_COUNT.size)
    position = _VERSION_AND_COUNT.size + 2 + name_length
    (count,) = struct.unpack_from(">i", assignment, position)
    return struct.unpack_from(f">{count}i", assignment, position + 4)


def _string(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack(">h", len(encoded)) + encoded
