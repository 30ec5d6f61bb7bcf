"""Shares of partitions over the protocol: the tags of heartbeats and descriptions."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.extended.packed import unpack_shares
from barnabas.protocol.record_keys.hash_range import HashRange, even_ranges
from tests.conformance.harness import Lab, open_lab

GROUP, TOPIC = "billing", "orders"
LOW, HIGH = even_ranges(2)
AT_ONCE = {
    "group__consumer__min__assignment__interval__ms": "0",
    "group__consumer__assignment__interval__ms": "0",
}
"""A change of the group gives a new assignment with the next heartbeat."""


class Member:
    """A member that follows its assignment at once."""

    def __init__(self, lab: Lab, member_id: str, *, individual_commit: bool) -> None:
        self._lab = lab
        self.member_id = member_id
        self.individual_commit = individual_commit
        self.epoch = 0
        self.owned: dict[UUID, tuple[int, ...]] = {}
        self.shares: dict[int, HashRange] | None = None
        """None if the last assignment had no tag."""

    async def beat(self) -> None:
        answer = await self._lab.client().ask(
            "consumer_group_heartbeat",
            1,
            group_id=GROUP,
            member_id=self.member_id,
            member_epoch=self.epoch,
            rebalance_timeout=60_000,
            subscribed_topic_names=[TOPIC],
            topic_partitions=[{"topic_id": id_, "partitions": ones} for id_, ones in self.owned.items()],
            individual_commit=self.individual_commit,
        )
        assert answer.error_code is ErrorCode.none, answer.error_message
        self.epoch = answer.member_epoch
        topics = answer.assignment.topic_partitions
        self.owned = {topic.topic_id: topic.partitions for topic in topics}
        packed = [topic.hash_ranges for topic in topics if topic.hash_ranges is not None]
        self.shares = unpack_shares(b"".join(packed)) if packed else None


async def settle(*members: Member) -> None:
    for _ in range(4):
        for member in members:
            await member.beat()


async def described(lab: Lab, *, wants_shares: bool) -> dict[str, Any]:
    """The topic of each member's assignment, and that of its target."""
    answer = await lab.client().ask(
        "consumer_group_describe", 1, group_ids=[GROUP], wants_shares=wants_shares
    )
    return {
        one.member_id: (one.assignment.topic_partitions[0], one.target_assignment.topic_partitions[0])
        for one in answer.groups[0].members
    }


async def sharing(lab: Lab) -> tuple[Member, Member]:
    """Two members that share the only partition."""
    await lab.create_topic(TOPIC)
    members = (
        Member(lab, "a", individual_commit=True),
        Member(lab, "b", individual_commit=True),
    )
    await settle(*members)
    return members


@pytest.mark.parametrize("come_back", [Lab.restart, Lab.crash])
async def test_two_members_share_a_partition_also_after_a_restart(come_back: Any) -> None:
    async with open_lab(**AT_ONCE) as lab:
        a, b = await sharing(lab)
        before = (a.shares, b.shares)
        assert sorted(before, key=str) == [{0: LOW}, {0: HIGH}]
        await come_back(lab)
        await settle(a, b)
        assert (a.shares, b.shares) == before


async def test_members_that_do_not_ask_for_shares_get_whole_partitions_and_no_tag() -> None:
    async with open_lab(**AT_ONCE) as lab:
        await lab.create_topic(TOPIC)
        a = Member(lab, "a", individual_commit=False)
        b = Member(lab, "b", individual_commit=False)
        await settle(a, b)
        assert (a.shares, b.shares) == (None, None)
        assert sorted(map(len, (a.owned, b.owned))) == [0, 1]


async def test_a_member_that_ceases_to_ask_gives_up_its_share() -> None:
    async with open_lab(**AT_ONCE) as lab:
        a, b = await sharing(lab)
        a.individual_commit = False
        await a.beat()
        assert a.owned == {}
        await settle(a, b)
        assert (a.shares, b.shares) == (None, None)
        assert sorted(map(len, (a.owned, b.owned))) == [0, 1]


async def test_a_description_has_the_shares_if_it_is_asked_for_them() -> None:
    async with open_lab(**AT_ONCE) as lab:
        a, b = await sharing(lab)
        found = await described(lab, wants_shares=True)
        for member in (a, b):
            for topic in found[member.member_id]:
                assert unpack_shares(topic.hash_ranges) == member.shares
        plain = await described(lab, wants_shares=False)
        assert all(topic.hash_ranges is None for topics in plain.values() for topic in topics)
