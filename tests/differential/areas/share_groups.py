"""Share groups: members that join and leave, fetch, acknowledge, release, reject and renew, with sessions
that end and wrong epochs, and the answers to describe, alter and delete.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from tests.differential.areas.groups import group_is_ready
from tests.differential.areas.share_members import (
    ACCEPT,
    GAP,
    REJECT,
    RELEASE,
    RENEW,
    Batches,
    Member,
    ShareGroup,
)
from tests.differential.stage import Stage, batch

_STEPS = 22
_LOCK_MS = 1_000

_Step = Callable[[Member], Awaitable[None]]


class _Group(ShareGroup):
    """A group with all kinds of requests."""

    def steps(self) -> dict[_Step, int]:
        """The possible next steps, with their weights."""
        return {
            self.produce: 4,
            self.fetch: 7,
            self.acknowledge: 5,
            self.acknowledge_wrongly: 2,
            self.renew: 1,
            self.fetch_to_renew: 1,
            self.beat: 2,
            self.join: 1,
            self.leave: 1,
            self.end_session: 1,
            self.describe: 1,
            self.describe_offsets: 2,
            self.alter_offsets: 1,
            self.delete_offsets: 1,
            self.delete_group: 1,
        }

    # The group.

    async def beat(self, member: Member) -> None:
        epoch = self.chance.choice([member.epoch] * 5 + [member.epoch + 1, member.epoch + 5])
        response = await self.stage.ask(**self.heartbeat(member, epoch, None))
        if response.error_code == 0 and epoch > 0:
            member.epoch = response.member_epoch

    async def leave(self, member: Member) -> None:
        """Not the last member: changes to an empty group come at the end."""
        if all(one.is_in_group for one in self.members):
            await self.stage.ask(**self.heartbeat(member, -1, None))
            member.is_in_group = False

    async def describe(self, _member: Member) -> None:
        groups = [self.group_id, self.stage.name("none")]
        await self.stage.ask(0, "share_group_describe", group_ids=groups, include_authorized_operations=False)

    # Records.

    async def produce(self, _member: Member) -> None:
        partition = self.chance.choice(self.partitions)
        sizes = self.chance.choice([[1], [3], [5, 5], [10], [2, 2, 2, 2]])
        for size in sizes:
            answer = await self.stage.produce(*partition, batch(size))
            self.stage.numbering(*partition).add(answer.base_offset, size)

    async def fetch(self, member: Member) -> None:
        epoch, first = member.session_epoch, member.session_epoch == 0
        batches = (
            {}
            if first or self.chance.random() < 0.5
            else self.acknowledgements(member, [ACCEPT, REJECT, GAP])
        )
        asked_epoch = self.chance.choice([epoch] * 12 + [epoch + 1])
        response = await self.stage.ask(
            member.number,
            "share_fetch",
            self.chance.choice([1, 2]),
            **{**self.fetch_fields(member, asked_epoch), **self.limits()},
            topics=self.topics(batches, first=first),
        )
        self.note_fetched(member, response)

    def limits(self) -> dict[str, Any]:
        is_one = len(self.partitions) == 1
        return {
            "max_records": self.chance.choice([1, 4, 500]) if is_one else 500,
            "batch_size": self.chance.choice([2, 500]),
            "max_bytes": self.chance.choice([1, 100, 150, 250, 1 << 20, 1 << 20]) if is_one else 1 << 20,
            "min_bytes": self.chance.choice([0, 1, 1, 100]),
            "share_acquire_mode": self.chance.choice([0, 0, 1]),
        }

    async def fetch_to_renew(self, member: Member) -> None:
        """A fetch that renews fetches nothing, which its answer shows."""
        if not member.session_epoch:
            return
        limits = dict.fromkeys(["max_wait", "min_bytes", "max_bytes", "max_records"], 0)
        if self.chance.random() < 0.2:
            limits["max_bytes"] = 1
        fields: dict[str, Any] = {**self.fetch_fields(member, member.session_epoch), **limits}
        response = await self.stage.ask(
            member.number,
            "share_fetch",
            2,
            **fields,
            is_renew_ack=True,
            topics=self.topics(self.renewals(member)),
        )
        self.note_fetched(member, response)

    async def renew(self, member: Member) -> None:
        await self.send_acknowledgements(member, self.renewals(member), renews=True)

    def renewals(self, member: Member) -> Batches:
        """Renews some of the member's records, which it continues to hold; the first record may be
        accepted.
        """
        batches: Batches = {}
        for partition, first, last in member.held[:2]:
            types = [RENEW] if first == last else self.chance.choice([[RENEW], [RENEW] * (last - first + 1)])
            batches[partition] = [{"first_offset": first, "last_offset": last, "acknowledge_types": types}]
        return batches

    def acknowledgements(self, member: Member, types_wanted: list[int]) -> Batches:
        """Acknowledges some of the member's records, which it then no longer holds.

        Kafka can deliver a record that a fetch releases again after the release is written: usually with the
        next fetch.
        """
        batches: Batches = {}
        for held in self.chance.sample(member.held, min(len(member.held), self.chance.choice([1, 2]))):
            partition, first, last = held
            if partition in batches:
                continue
            member.held.remove(held)
            upto = self.chance.randint(first, last)
            if upto < last:
                member.held.append((partition, upto + 1, last))
            count = self.chance.choice([1, 1, 1, 1, upto - first + 1])
            types = [self.chance.choice(types_wanted) for _ in range(count)]
            batches[partition] = [{"first_offset": first, "last_offset": upto, "acknowledge_types": types}]
        return batches

    async def acknowledge(self, member: Member) -> None:
        await self.send_acknowledgements(
            member, self.acknowledgements(member, [ACCEPT, ACCEPT, RELEASE, REJECT, GAP])
        )

    async def acknowledge_wrongly(self, member: Member) -> None:
        """Offsets that no member holds, unknown types, batches in the wrong order."""
        wrong: list[tuple[int, int, list[int]]] = self.chance.choice(
            [
                [(0, 0, [ACCEPT])],
                [(100, 200, [ACCEPT])],
                [(5, 2, [ACCEPT])],
                [(0, 2, [])],
                [(0, 2, [ACCEPT, ACCEPT])],
                [(0, 0, [9])],
                [(0, 0, [RENEW])],
                [(3, 4, [ACCEPT]), (0, 1, [ACCEPT])],
            ]
        )
        partition = self.chance.choice(self.partitions)
        offset = self.stage.numbering(*partition).offset
        batches = [
            {"first_offset": offset(first), "last_offset": offset(last), "acknowledge_types": types}
            for first, last, types in wrong
        ]
        await self.send_acknowledgements(member, {partition: batches})
        member.held.clear()

    async def finish(self) -> None:
        """The changes of an administrator after all members have left."""
        for member in self.members:
            await self.end_session(member)
            await self.stage.ask(**self.heartbeat(member, -1, None))
        await self.describe_offsets(self.members[0])
        for action in self.chance.sample([self.alter_offsets, self.delete_offsets, self.delete_group], 2):
            await action(self.members[0])
            await self.describe_offsets(self.members[0])
            await self.describe(self.members[0])

    async def let_locks_expire(self) -> None:
        """Records that one member acquires go to the other when its locks have ended."""
        await self.set("share.record.lock.duration.ms", str(_LOCK_MS))
        for member in self.members:
            await self.end_session(member)
            await self.fetch(member)
            await self.stage.elapse(_LOCK_MS + 300)

    # Offsets.

    async def describe_offsets(self, _member: Member) -> None:
        indexes = list(range(self.partition_count))
        topics = [{"topic_name": name, "partitions": indexes} for name in self.topic_names]
        groups = [{"group_id": self.group_id, "topics": self.chance.choice([topics, None, []])}]
        await self.stage.ask(0, "describe_share_group_offsets", self.chance.choice([0, 1]), groups=groups)

    async def alter_offsets(self, _member: Member) -> None:
        numbering = self.stage.numbering(*self.partitions[0])
        partitions = [
            {"partition_index": index, "start_offset": numbering.offset(start)}
            for index, start in ((0, self.chance.choice([0, 1, 3])), (9, 1))
        ]
        topics = [{"topic_name": self.stage.name("t"), "partitions": partitions}]
        await self.stage.ask(0, "alter_share_group_offsets", group_id=self.group_id, topics=topics)

    async def delete_offsets(self, _member: Member) -> None:
        names = [self.stage.name("t"), self.stage.name("nothing")]
        topics = [{"topic_name": name} for name in names[: self.chance.choice([1, 2])]]
        await self.stage.ask(0, "delete_share_group_offsets", group_id=self.group_id, topics=topics)

    async def delete_group(self, _member: Member) -> None:
        await self.stage.ask(0, "delete_groups", groups_names=[self.group_id])


async def play(stage: Stage) -> None:
    names, partition_count = stage.chance.choice([("t", 1), ("t", 1), ("t", 2), ("tu", 1), ("tu", 2)])
    topics = {name: await stage.create_topic(name, partition_count) for name in names}
    await stage.until(lambda: group_is_ready(stage))
    group = _Group(stage, topics, partition_count)
    await group.begin()
    steps = group.steps()
    for action in stage.chance.choices(list(steps), weights=list(steps.values()), k=_STEPS):
        await action(stage.chance.choice(group.members))
    if stage.chance.random() < 0.2:
        await group.let_locks_expire()
    await group.finish()
