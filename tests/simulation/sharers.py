"""Members that share partitions: they allow individual commits, follow their assignment with heartbeats, and
process the records of their hashes (`sharer_work`).

They give up shares slowly, and sometimes while a transaction is open. They fall silent for longer than their
session while their work goes on, freeze as a whole, crash, leave, come back, and change their setting.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from itertools import count
from typing import Any
from uuid import UUID

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.extended.packed import unpack_shares
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.record_keys.hash_range import ALL_HASHES, HashRange
from tests.simulation.client import Disconnected
from tests.simulation.model import Violation
from tests.simulation.sharer_member import JOIN_EPOCH, Member, MemberIds
from tests.simulation.sharer_work import SharerWork
from tests.simulation.world import World

_HEARTBEAT_MS = 300
_REBALANCE_MS = (4_000, 60_000)
"""Not shorter than a session."""
_PAUSE_SECONDS_MAX = 0.3
_ABSENCE_SECONDS_MAX = 5.0
_REVOCATION_SECONDS_MAX = 2.0
_CHANGE_CHANCE = 0.08
_LEAVE_EPOCH = -1
_OUT = (ErrorCode.unknown_member_id, ErrorCode.fenced_member_epoch, ErrorCode.group_id_not_found)


class Sharer:
    """One program that is started again after each crash."""

    def __init__(self, world: World, number: int) -> None:
        self._world = world
        self._model = world.ordinary.sharing
        self._group_id = self._model.name
        self._name = f"{self._group_id}-{number}"
        self._random = world.random(self._name)
        self._client = world.client(self._name)
        self._session_ms = int(world.scenario.settings["group.consumer.session.timeout.ms"])
        self._rebalance_ms = self._random.choice(_REBALANCE_MS)
        self._starts = count()
        self._individual = True
        self._gives_up_hastily = False
        self._member = Member("", individual=True)
        self._ids = MemberIds(self._random)
        self._heartbeat_due_ms = 0.0
        self._unheard_since_ms = 0.0
        """When it sent the first heartbeat after the last one with an answer; 0 if there is none."""
        self._revoke_by_ms = 0.0
        """When the coordinator may expel it because it has not given up its revoked shares."""
        self._says_all = True

    async def run(self) -> None:
        while True:
            await self._live()
            self._note("crashes")
            self._client.disconnect()
            await asyncio.sleep(self._random.uniform(0, _ABSENCE_SECONDS_MAX))

    async def _live(self) -> None:
        """One process: its heartbeats and its work, until it crashes."""
        self._forget()
        self._ids = MemberIds(self._random)
        transactional_id = f"sharer-{self._name}"
        if self._random.random() < 0.5:
            # Then the last transaction stays open until its timeout, and not until this process begins.
            transactional_id += f"-{next(self._starts)}"
        work = SharerWork(self._world, self._name, transactional_id, self._random)
        tasks = [
            asyncio.ensure_future(self._stay()),
            asyncio.ensure_future(work.run(lambda: self._member)),
        ]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            work.disconnect()
        for task in done:
            task.result()

    async def _stay(self) -> None:
        """Heartbeats and changes; returns at a crash."""
        while True:
            with suppress(Disconnected):
                if self._must_be_away():
                    await self._stay_away()
                elif self._world.now_ms >= self._heartbeat_due_ms or self._member.epoch == JOIN_EPOCH:
                    await self._heartbeat()
                elif not self._world.is_ending and self._random.random() < _CHANGE_CHANCE:
                    if self._random.random() < 0.2:
                        return
                    await self._misbehave()
            await asyncio.sleep(self._random.uniform(0.02, _PAUSE_SECONDS_MAX))

    async def _misbehave(self) -> None:
        chance = self._random.random()
        if chance < 0.2:
            self._client.disconnect()
        elif chance < 0.4:
            await self._leave()
            await asyncio.sleep(self._random.uniform(0, _ABSENCE_SECONDS_MAX))
        elif chance < 0.6 and self._world.scenario.sharers_change:
            await self._change_setting()
        else:
            self._note("falls silent")
            await asyncio.sleep(self._random.uniform(0, _ABSENCE_SECONDS_MAX))

    async def _change_setting(self) -> None:
        """Sometimes back again at once."""
        for _ in range(self._random.randint(1, 2)):
            self._individual = not self._individual
            self._note(f"allows individual commits: {self._individual}")
            await self._heartbeat()

    # Leaving

    def _must_be_away(self) -> bool:
        return self._group_id in self._world.leaving

    async def _stay_away(self) -> None:
        """An administrator needs the group empty."""
        if self._member.epoch != JOIN_EPOCH:
            await self._leave()
        self._world.left[self._group_id].add(self._name)
        while self._must_be_away():  # noqa: ASYNC110
            await asyncio.sleep(0.05)

    async def _leave(self) -> None:
        """Without waiting for the work under way."""
        member_id = self._member.member_id
        self._forget()
        await self._ask(group_id=self._group_id, member_id=member_id, member_epoch=_LEAVE_EPOCH)

    def _forget(self) -> None:
        self._model.members.left(self._member.member_id)
        self._member = Member("", individual=self._individual)

    # Heartbeats

    async def _heartbeat(self) -> None:
        await self._connect()
        if self._member.epoch == JOIN_EPOCH:
            member_id = self._ids.next(self._model.members.incarnation)
            self._member, self._says_all = Member(member_id, individual=self._individual), True
        member, sent_ms = self._member, self._world.now_ms
        self._unheard_since_ms = self._unheard_since_ms or sent_ms
        if self._world.is_ending and self._world.scenario.shares_in_transactions:
            self._individual = True
        member.individual = self._individual
        for partition in member.releasable(sent_ms, hastily=self._gives_up_hastily):
            member.release(partition)
        self._model.members.give_up(member.member_id, member.held)
        incarnation = self._model.members.incarnation
        response = await self._ask(**self._request(member))
        self._heartbeat_due_ms = self._world.now_ms + _HEARTBEAT_MS
        if response.error_code is not ErrorCode.none:
            self._note(f"heartbeat: {response.error_code.name}")
            if response.error_code in _OUT:
                self._forget()
            return
        member.epoch, self._says_all = response.member_epoch, False
        if response.assignment is not None:
            self._follow(member, _shares_of(response.assignment), sent_ms, incarnation)
        if incarnation == self._model.members.incarnation:
            self._note_shares(member, sent_ms)
        self._unheard_since_ms = 0.0

    def _request(self, member: Member) -> dict[str, Any]:
        by_topic: dict[UUID, list[int]] = {}
        for one in sorted(member.held):
            by_topic.setdefault(one.topic_id, []).append(one.partition)
        return {
            "group_id": self._group_id,
            "member_id": member.member_id,
            "member_epoch": member.epoch,
            "rebalance_timeout": self._rebalance_ms if self._says_all else -1,
            "subscribed_topic_names": ["orders"] if self._says_all else None,
            "topic_partitions": [
                {"topic_id": topic_id, "partitions": indexes} for topic_id, indexes in by_topic.items()
            ],
            "individual_commit": member.individual,
        }

    def _follow(
        self,
        member: Member,
        shares: dict[TopicIdPartition, HashRange],
        sent_ms: float,
        incarnation: int,
    ) -> None:
        self._note(f"has {[(one.partition, *hashes) for one, hashes in shares.items()]}")
        revoked = [one for one in member.held if one not in shares and one not in member.revoked]
        if revoked and not member.revoked:
            self._revoke_by_ms = self._unheard_since_ms + self._rebalance_ms
            self._gives_up_hastily = self._random.random() < 0.5
        for one in revoked:
            slowness = 0.0 if self._world.is_ending else self._random.choice((0.0, _REVOCATION_SECONDS_MAX))
            member.revoked[one] = self._world.now_ms + self._random.uniform(0, slowness) * 1000
        given = {one: hashes for one, hashes in shares.items() if one not in member.held}
        for one, hashes in shares.items():
            member.revoked.pop(one, None)
            if member.held.get(one, hashes) != hashes:
                raise Violation(f"{self._name}: {one} has other hashes, but was not given up")
        member.held.update(given)
        if revoked or given:
            self._heartbeat_due_ms = self._world.now_ms
        if incarnation == self._model.members.incarnation:
            clock = self._world.machine.clock
            self._model.check_handover(
                member.member_id,
                given,
                sent_ms=sent_ms,
                now_ms=self._world.now_ms,
                wall_ms=clock.wall_ms(),
                clock_changes=clock.change_count,
            )

    def _note_shares(self, member: Member, sent_ms: float) -> None:
        until_ms = sent_ms + self._session_ms
        if member.revoked:
            until_ms = min(until_ms, self._revoke_by_ms)
        members = self._model.members
        members.told_epoch(member.member_id, member.epoch)
        members.stays(member.member_id, until_ms)
        kept = {one: hashes for one, hashes in member.held.items() if one not in member.revoked}
        members.given(member.member_id, kept, sent_ms=sent_ms, now_ms=self._world.now_ms, until_ms=until_ms)

    async def _connect(self) -> None:
        try:
            await self._client.connect()
        except Disconnected:
            self._lose_connection()
            raise

    async def _ask(self, **values: Any) -> Any:
        try:
            return await self._client.ask("consumer_group_heartbeat", **values)
        except Disconnected:
            self._lose_connection()
            raise

    def _lose_connection(self) -> None:
        self._client.disconnect()
        self._says_all = True  # The last answer may have been lost, so a full one is needed.

    def _note(self, what: str) -> None:
        self._world.trace.event(f"{self._name} {what}")


def _shares_of(assignment: Any) -> dict[TopicIdPartition, HashRange]:
    shares: dict[TopicIdPartition, HashRange] = {}
    for topic in assignment.topic_partitions:
        hashes = unpack_shares(topic.hash_ranges or b"")
        for index in topic.partitions:
            shares[TopicIdPartition(topic.topic_id, index)] = hashes.get(index, ALL_HASHES)
    return shares
