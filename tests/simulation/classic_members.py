"""Members of classic groups: they join, divide the partitions, commit their progress, stay silent for longer
than their session, disconnect, leave and come back.

A member of an eager group gives up all partitions before they are divided again. In a cooperative group
(KIP-429) members report their partitions, keep them, and get only partitions without an owner. Some members
have an instance id (KIP-345).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from tests.simulation.client import Disconnected
from tests.simulation.group_offsets import GroupOffsets
from tests.simulation.world import World

SESSION_MS = 2000

_REBALANCE_MS = 2500
_HEARTBEAT_MS = 600
_PAUSE_SECONDS_MAX = 0.3
_ABSENCE_SECONDS_MAX = 3.0
_STRANGER = (
    ErrorCode.unknown_member_id,
    ErrorCode.illegal_generation,
    ErrorCode.fenced_instance_id,
    ErrorCode.inconsistent_group_protocol,
)


class _Claim(NamedTuple):
    """The metadata that a member sends when it joins."""

    member_id: str
    generation: int
    owned: frozenset[TopicIdPartition]


class ClassicMember:
    """One member of one group. Its name is the id that stays the same when it joins under another
    member id.
    """

    def __init__(self, world: World, group_id: str, number: int, *, cooperative: bool) -> None:
        self._world = world
        self._group_id = group_id
        self._name = f"{group_id}-{number}"
        self._random = world.random(self._name)
        self._client = world.client(self._name)
        self._offsets = GroupOffsets(world, group_id, self._client)
        self._model = world.ordinary.generation(group_id)
        self._cooperative = cooperative
        self._instance_id = self._name if self._random.random() < 0.3 else None
        self._member_id = ""
        self._generation = -1
        self._owned: frozenset[TopicIdPartition] = frozenset()
        self._must_join = True
        self._heartbeat_due_ms = 0.0

    async def run(self) -> None:
        while True:
            try:
                await self._work()
            except Disconnected:
                self._client.disconnect()
            await asyncio.sleep(self._random.uniform(0.02, _PAUSE_SECONDS_MAX))

    async def _work(self) -> None:
        if self._must_join:
            await self._join()
        elif self._world.now_ms >= self._heartbeat_due_ms:
            await self._heartbeat()
        elif self._owned and self._random.random() < 0.5:
            await self._commit()
        elif self._owned and self._random.random() < 0.5:
            await self._offsets.fetch(sorted(self._owned))
        elif not self._world.is_ending and self._random.random() < 0.2:
            await self._misbehave()

    async def _misbehave(self) -> None:
        chance = self._random.random()
        if chance < 0.3:
            self._client.disconnect()
        elif chance < 0.6:
            await self._leave()
        elif chance < 0.8:
            self._must_join = True  # Like a member whose subscription has changed.
        else:
            await asyncio.sleep(self._random.uniform(0, _ABSENCE_SECONDS_MAX))

    # Joining.

    async def _join(self) -> None:
        incarnation, generation_before = self._model.incarnation, self._model.generation
        joined = await self._ask_to_join()
        if joined.error_code is ErrorCode.member_id_required:
            self._member_id = joined.member_id
            joined = await self._ask_to_join()
        if joined.error_code is not ErrorCode.none:
            self._refused("join", joined.error_code)
            return
        if incarnation == self._model.incarnation:
            self._model.joined(joined.generation_id, generation_before)
        self._member_id, generation = joined.member_id, joined.generation_id
        if self._random.random() < 0.1:
            await asyncio.sleep(self._random.uniform(0, _ABSENCE_SECONDS_MAX))
        assignments = self._divide(joined) if joined.leader == joined.member_id else {}
        await self._sync(generation, assignments, skipped=joined.skip_assignment)

    async def _ask_to_join(self) -> Any:
        metadata = _encoded(self._generation, self._owned if self._cooperative else ())
        return await self._client.ask(
            "join_group",
            group_id=self._group_id,
            session_timeout=SESSION_MS,
            rebalance_timeout=_REBALANCE_MS,
            member_id=self._member_id,
            group_instance_id=self._instance_id,
            protocol_type="simulation",
            protocols=[{"name": "even", "metadata": metadata}],
        )

    def _divide(self, joined: Any) -> dict[str, frozenset[TopicIdPartition]]:
        """The leader's part: all partitions, one after another to each member."""
        claims = [_Claim(one.member_id, *_decoded(one.metadata)) for one in joined.members]
        newest = max(claim.generation for claim in claims)
        holders = {
            partition: claim.member_id
            for claim in claims
            if claim.generation == newest
            for partition in claim.owned
        }
        member_ids = sorted(claim.member_id for claim in claims)
        partitions = sorted(one for topic in self._world.topics.values() for one in topic.partitions)
        divided: dict[str, set[TopicIdPartition]] = {member_id: set() for member_id in member_ids}
        for index, partition in enumerate(partitions):
            member_id = member_ids[index % len(member_ids)]
            # Its owner has to give it up: the assignment leaves it out, and the owner joins again, so that
            # the next assignment has it.
            if holders.get(partition, member_id) == member_id:
                divided[member_id].add(partition)
        return {member_id: frozenset(given) for member_id, given in divided.items()}

    async def _sync(
        self, generation: int, assignments: dict[str, frozenset[TopicIdPartition]], *, skipped: bool
    ) -> None:
        incarnation, generation_before = self._model.incarnation, self._model.generation
        encoded = [
            {"member_id": member_id, "assignment": _encoded(generation, given)}
            for member_id, given in assignments.items()
        ]
        response = await self._client.ask(
            "sync_group",
            group_id=self._group_id,
            generation_id=generation,
            member_id=self._member_id,
            group_instance_id=self._instance_id,
            protocol_type="simulation",
            protocol_name="even",
            assignments=() if skipped else encoded,
        )
        if response.error_code is not ErrorCode.none:
            self._refused("sync", response.error_code)
            return
        _, owned = _decoded(response.assignment)
        if incarnation == self._model.incarnation:
            self._model.assigned(self._name, generation, owned, generation_before)
        self._note(f"owns {len(owned)} partitions in generation {generation}")
        has_revoked = self._cooperative and not self._owned.issubset(owned)
        self._generation, self._owned, self._must_join = generation, owned, has_revoked
        self._heartbeat_due_ms = self._world.now_ms + _HEARTBEAT_MS
        if owned:
            await self._offsets.fetch(sorted(owned))

    # Staying.

    async def _heartbeat(self) -> None:
        self._heartbeat_due_ms = self._world.now_ms + _HEARTBEAT_MS
        response = await self._client.ask("heartbeat", **self._identity(), generation_id=self._generation)
        if response.error_code is not ErrorCode.none:
            self._refused("heartbeat", response.error_code)

    async def _commit(self) -> None:
        incarnation, generation_before = self._model.incarnation, self._model.generation
        partitions = sorted(self._owned)
        chosen = self._random.sample(partitions, self._random.randint(1, len(partitions)))
        code = await self._offsets.commit(chosen, member_id=self._member_id, epoch=self._generation)
        if code is not ErrorCode.none:
            self._refused("commit", code)
        elif incarnation == self._model.incarnation:
            self._model.committed(self._name, self._generation, generation_before)

    async def _leave(self) -> None:
        member = {"member_id": self._member_id, "group_instance_id": self._instance_id}
        self._forget()
        await self._client.ask("leave_group", group_id=self._group_id, members=[member])
        await asyncio.sleep(self._random.uniform(0, _ABSENCE_SECONDS_MAX))

    def _refused(self, what: str, code: ErrorCode) -> None:
        self._note(f"{what}: {code.name}")
        if code in _STRANGER:
            self._forget()
        elif code is ErrorCode.rebalance_in_progress:
            self._must_join = True

    def _forget(self) -> None:
        self._member_id, self._generation, self._owned = "", -1, frozenset()
        self._must_join = True

    def _identity(self) -> dict[str, Any]:
        return {
            "group_id": self._group_id,
            "member_id": self._member_id,
            "group_instance_id": self._instance_id,
        }

    def _note(self, what: str) -> None:
        self._world.trace.event(f"{self._name} {what}")


def _encoded(generation: int, partitions: Iterable[TopicIdPartition]) -> bytes:
    """A generation and partitions, in the form of this group's protocol."""
    words: Sequence[str] = [str(generation), *(f"{one.topic_id.hex}-{one.partition}" for one in partitions)]
    return " ".join(words).encode()


def _decoded(data: bytes) -> tuple[int, frozenset[TopicIdPartition]]:
    generation, *words = data.decode().split() or ["-1"]
    pairs = (word.split("-") for word in words)
    return int(generation), frozenset(TopicIdPartition(UUID(hex=topic), int(index)) for topic, index in pairs)
