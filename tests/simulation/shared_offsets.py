"""Ranges of offsets that members of a sharing group commit, and look up again."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence, Set
from typing import Any, NamedTuple

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.extended.packed import pack_ranges, unpack_ranges
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.record_keys.hash_range import HashRange
from tests.simulation.client import SimulatedClient
from tests.simulation.group_offsets import REFUSALS
from tests.simulation.model import Violation
from tests.simulation.ranges_model import RangesCommit, RangesModel
from tests.simulation.sharer_member import Committer, Member
from tests.simulation.world import World

START_OFFSET = 0
"""The position at which the group begins."""

STRAGGLER_SECONDS = 1.0
"""A request without an answer has its effect within this time, or never."""


class Committed(NamedTuple):
    """The answer for one partition."""

    next_offset: int
    """-1 if nothing is committed."""
    offsets: Set[int]


class SharedOffsets:
    """The offsets of the sharing group, over one connection."""

    def __init__(self, world: World, client: SimulatedClient) -> None:
        self._world = world
        self._model = world.ordinary.sharing
        self._client = client

    # Looking up

    async def fetch(
        self,
        partitions: Sequence[TopicIdPartition],
        *,
        require_stable: bool,
        member: Member | None = None,
    ) -> dict[TopicIdPartition, Committed | ErrorCode]:
        """The committed offsets, which must be possible, or an error for each partition."""
        sent_ms, incarnation = self._world.now_ms, self._world.ordinary.incarnation
        looks = {one: self._model.ranges(one).look(sent_ms) for one in partitions}
        topics = [{"topic_id": one.topic_id, "partition_indexes": [one.partition]} for one in partitions]
        asked = {"group_id": self._model.name, "topics": topics, "wants_ranges": True, "member_epoch": -1}
        if member is not None:
            asked |= {"member_id": member.member_id, "member_epoch": member.epoch}
        response = await self._client.ask("offset_fetch", groups=[asked], require_stable=require_stable)
        (group,) = response.groups
        if group.error_code is not ErrorCode.none:
            return {one: ErrorCode(group.error_code) for one in partitions}
        found: dict[TopicIdPartition, Committed | ErrorCode] = {}
        for topic in group.topics:
            for one in topic.partitions:
                partition = TopicIdPartition(topic.topic_id, one.partition_index)
                if one.error_code is ErrorCode.none:
                    found[partition] = committed = _committed(one)
                    self._model.ranges(partition).saw(committed.offsets, looks[partition], self._world.now_ms)
                else:
                    found[partition] = ErrorCode(one.error_code)
        if incarnation == self._world.ordinary.incarnation and require_stable:
            self._check_stability("" if member is None else member.member_id, found, sent_ms)
        return found

    def _check_stability(
        self, reader: str, found: Mapping[TopicIdPartition, Committed | ErrorCode], sent_ms: float
    ) -> None:
        clock = self._world.machine.clock
        for partition, one in found.items():
            if one is ErrorCode.unstable_offset_commit:
                self._model.check_unstable(reader, partition, sent_ms=sent_ms, now_ms=self._world.now_ms)
            elif isinstance(one, Committed):
                self._model.check_stable(
                    reader,
                    partition,
                    sent_ms=sent_ms,
                    wall_ms=clock.wall_ms(),
                    clock_changes=clock.change_count,
                )

    # Committing

    async def commit(
        self,
        member: Committer,
        shares: Mapping[TopicIdPartition, HashRange],
        offsets: Mapping[TopicIdPartition, Sequence[int]],
        *,
        start: int = -1,
    ) -> ErrorCode:
        """Commits offsets individually, of records with these hashes; returns the first error code."""
        sent_ms, incarnation = self._world.now_ms, self._world.ordinary.incarnation
        await self._client.connect()
        sent = {one: self._model.ranges(one).send(ones, sent_ms) for one, ones in offsets.items()}
        response = await self._client.ask(
            "offset_commit",
            group_id=self._model.name,
            member_id=member.member_id,
            generation_id_or_member_epoch=member.epoch,
            topics=topics_of(sent, start),
        )
        codes = codes_of(response.topics)
        if incarnation != self._world.ordinary.incarnation:
            return first_error(codes)
        for partition, commit in sent.items():
            model = self._model.ranges(partition)
            if codes[partition] is ErrorCode.none:
                model.confirm(commit, self._world.now_ms)
                if partition in shares:
                    self._model.members.committed(
                        member.member_id,
                        partition,
                        shares[partition],
                        sent_ms=sent_ms,
                        now_ms=self._world.now_ms,
                    )
            elif codes[partition] in RANGES_REFUSALS:
                model.refuse(commit)
        return first_error(codes)

    async def commit_ordinarily(
        self, partition: TopicIdPartition, next_offset: int, *, member_id: str = "", epoch: int = -1
    ) -> ErrorCode:
        """An ordinary commit, which takes all ranges out of force; also of an administrator."""
        model = self._model.ranges(partition)
        self._model.may_reset(partition)
        model.begin_reset()
        topic = {
            "topic_id": partition.topic_id,
            "partitions": [{"partition_index": partition.partition, "committed_offset": next_offset}],
        }
        try:
            response = await self._client.ask(
                "offset_commit",
                group_id=self._model.name,
                member_id=member_id,
                generation_id_or_member_epoch=epoch,
                topics=[topic],
            )
        except BaseException:
            await self._lose_reset(model, next_offset)
            raise
        code = codes_of(response.topics)[partition]
        if code is not ErrorCode.none and code not in REFUSALS:
            await self._lose_reset(model, next_offset)
        else:
            model.end_reset(next_offset if code is ErrorCode.none else None)
        return code

    async def _lose_reset(self, model: RangesModel, next_offset: int) -> None:
        try:
            await asyncio.sleep(STRAGGLER_SECONDS)
        finally:
            model.lose_reset(next_offset)


RANGES_REFUSALS = REFUSALS | {ErrorCode.invalid_request, ErrorCode.invalid_commit_offset_size}
"""These errors mean that no range was committed."""


def topics_of(commits: Mapping[TopicIdPartition, RangesCommit], start: int) -> list[dict[str, Any]]:
    """The part of a request that commits these ranges."""
    return [
        {
            "topic_id": partition.topic_id,
            "partitions": [
                {
                    "partition_index": partition.partition,
                    "committed_offset": start,
                    "ranges": pack_ranges(commit.ranges),
                }
            ],
        }
        for partition, commit in commits.items()
    ]


def codes_of(topics: Any) -> dict[TopicIdPartition, ErrorCode]:
    return {
        TopicIdPartition(topic.topic_id, one.partition_index): one.error_code
        for topic in topics
        for one in topic.partitions
    }


def first_error(codes: Mapping[TopicIdPartition, ErrorCode]) -> ErrorCode:
    return next((code for code in codes.values() if code is not ErrorCode.none), ErrorCode.none)


def _committed(answer: Any) -> Committed:
    offsets = set(range(max(answer.committed_offset, 0)))
    for first_offset, last_offset in unpack_ranges(answer.ranges or b""):
        if first_offset < len(offsets) and first_offset < answer.committed_offset:
            raise Violation(f"the range from {first_offset} on is not behind {answer.committed_offset}")
        offsets.update(range(first_offset, last_offset + 1))
    return Committed(answer.committed_offset, offsets)
