"""Members of a KIP-848 group: the coordinator divides the partitions, and takes a partition away from one
member before it gives it to another.

They follow their assignment with each heartbeat, some under an instance id, some with a pattern instead of
names. They commit with their epoch, stay silent for longer than their session, leave and come back.
"""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.record_keys.hash_range import ALL_HASHES
from tests.simulation.client import Disconnected
from tests.simulation.group_offsets import GroupOffsets
from tests.simulation.model import Violation
from tests.simulation.world import World

_REBALANCE_MS = 60_000
_HEARTBEAT_MS = 300
_PAUSE_SECONDS_MAX = 0.3
_ABSENCE_SECONDS_MAX = 4.0
_OUT = (ErrorCode.unknown_member_id, ErrorCode.fenced_member_epoch, ErrorCode.group_id_not_found)
_LEAVE, _JOIN = -1, 0


class ConsumerMember:
    """One member of one group."""

    def __init__(self, world: World, group_id: str, number: int) -> None:
        self._world = world
        self._group_id = group_id
        self._name = f"{group_id}-{number}"
        self._random = world.random(self._name)
        self._client = world.client(self._name)
        self._offsets = GroupOffsets(world, group_id, self._client)
        self._model = world.ordinary.reconciliation(group_id)
        self._session_ms = int(world.scenario.settings["group.consumer.session.timeout.ms"])
        self._assignor = self._random.choice(("uniform", "range", None))
        self._follows_pattern = self._random.random() < 0.3
        self._member_id = ""
        self._epoch = _JOIN
        self._incarnation = 0
        """The model's epoch when the member last got an answer."""
        self._owned: frozenset[TopicIdPartition] = frozenset()
        self._heartbeat_due_ms = 0.0
        self._says_all = True
        """A full heartbeat gets a full answer, because the last answer may have been lost."""

    async def run(self) -> None:
        while True:
            try:
                await self._work()
            except Disconnected:
                self._client.disconnect()
                self._says_all = True
            await asyncio.sleep(self._random.uniform(0.02, _PAUSE_SECONDS_MAX))

    async def _work(self) -> None:
        if self._world.now_ms >= self._heartbeat_due_ms or self._epoch == _JOIN:
            await self._heartbeat()
        elif self._owned and self._random.random() < 0.5:
            await self._commit()
        elif self._owned and self._random.random() < 0.4:
            await self._offsets.fetch(sorted(self._owned))
        elif self._random.random() < 0.3:
            await self._describe()
        elif not self._world.is_ending and self._random.random() < 0.2:
            await self._misbehave()

    async def _misbehave(self) -> None:
        chance = self._random.random()
        if chance < 0.3:
            self._client.disconnect()
        elif chance < 0.6:
            await self._leave()
        else:
            await asyncio.sleep(self._random.uniform(0, _ABSENCE_SECONDS_MAX))

    # The group.

    async def _heartbeat(self) -> None:
        await self._client.connect()
        if self._epoch == _JOIN:
            # From here on it is another member: the coordinator may or may not know the last one.
            self._member_id = UUID(int=self._random.getrandbits(128)).hex
        incarnation, sent_ms, member_id = self._model.incarnation, self._world.now_ms, self._member_id
        self._model.give_up(member_id, self._owned)
        response = await self._client.ask("consumer_group_heartbeat", **self._heartbeat_request())
        self._heartbeat_due_ms = self._world.now_ms + _HEARTBEAT_MS
        if response.error_code is not ErrorCode.none:
            self._refused("heartbeat", response.error_code)
            return
        self._epoch, self._incarnation, self._says_all = response.member_epoch, incarnation, False
        if incarnation != self._model.incarnation:
            return
        until_ms = sent_ms + self._session_ms
        self._model.told_epoch(member_id, response.member_epoch)
        self._model.stays(member_id, until_ms)
        if response.assignment is not None:
            owned = frozenset(
                TopicIdPartition(topic.topic_id, index)
                for topic in response.assignment.topic_partitions
                for index in topic.partitions
            )
            self._note(f"owns {len(owned)} partitions in epoch {self._epoch}")
            given = dict.fromkeys(sorted(owned), ALL_HASHES)
            self._model.given(member_id, given, sent_ms=sent_ms, now_ms=self._world.now_ms, until_ms=until_ms)
            if owned != self._owned:
                self._heartbeat_due_ms = self._world.now_ms  # Clients do so to confirm that they are ready.
            self._owned = owned

    def _heartbeat_request(self) -> dict[str, Any]:
        joins, says_all = self._epoch == _JOIN, self._says_all or self._epoch == _JOIN
        request: dict[str, Any] = {
            "group_id": self._group_id,
            "member_id": self._member_id,
            "member_epoch": self._epoch,
            "rebalance_timeout": _REBALANCE_MS if says_all else -1,
            "topic_partitions": () if joins else _by_topic(self._owned),
        }
        if says_all:
            request["server_assignor"] = self._assignor
        if says_all and self._follows_pattern:
            request["subscribed_topic_regex"] = "topic-.*"
        elif not self._follows_pattern:
            request["subscribed_topic_names"] = sorted(self._world.topics) or ["topic-0"]
        return request

    async def _leave(self) -> None:
        member_id = self._member_id
        self._forget()
        await self._client.ask(
            "consumer_group_heartbeat", group_id=self._group_id, member_id=member_id, member_epoch=_LEAVE
        )
        await asyncio.sleep(self._random.uniform(0, _ABSENCE_SECONDS_MAX))

    async def _describe(self) -> None:
        incarnation, epoch_before = self._model.incarnation, self._model.group_epoch
        response = await self._client.ask("consumer_group_describe", group_ids=[self._group_id])
        (group,) = response.groups
        if group.error_code is ErrorCode.none and incarnation == self._model.incarnation:
            self._model.told_group_epoch(group.group_epoch, epoch_before)

    # Offsets.

    async def _commit(self) -> None:
        partitions = sorted(self._owned)
        chosen = self._random.sample(partitions, self._random.randint(1, len(partitions)))
        code = await self._offsets.commit(chosen, member_id=self._member_id, epoch=self._epoch)
        if code is not ErrorCode.none:
            self._refused("commit", code)

    def _refused(self, what: str, code: ErrorCode) -> None:
        self._note(f"{what}: {code.name}")
        if code is ErrorCode.group_id_not_found and self._incarnation == self._model.incarnation:
            raise Violation(f"{self._group_id} is missing, but was not deleted")
        if code in _OUT:
            self._forget()

    def _forget(self) -> None:
        self._model.left(self._member_id)
        self._epoch, self._owned = _JOIN, frozenset()

    def _note(self, what: str) -> None:
        self._world.trace.event(f"{self._name} {what}")


def _by_topic(partitions: frozenset[TopicIdPartition]) -> list[dict[str, Any]]:
    by_topic: dict[UUID, list[int]] = {}
    for one in sorted(partitions):
        by_topic.setdefault(one.topic_id, []).append(one.partition)
    return [{"topic_id": topic_id, "partitions": indexes} for topic_id, indexes in by_topic.items()]
