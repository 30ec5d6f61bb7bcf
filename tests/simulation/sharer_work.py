"""The work of a sharer: rounds of reading records, processing those of its hashes in order, and committing
their offsets as ranges.

A round commits by OffsetCommit, or in a transaction with a result for each record. A round that has begun
goes on if its member is fenced meanwhile, as that of a paused process would. It must fail then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import NamedTuple

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.record_keys import NO_KEY, key_hash
from barnabas.protocol.record_keys.hash_range import HashRange
from tests.simulation.client import Disconnected
from tests.simulation.orders import key_of
from tests.simulation.readers import Committed, committed_records, fetch_committed
from tests.simulation.shared_offsets import START_OFFSET, SharedOffsets
from tests.simulation.sharer_member import JOIN_EPOCH, Committer, Member, Position
from tests.simulation.sharer_transactions import SharerTransactions
from tests.simulation.sharing_model import Result, reset_count_of
from tests.simulation.transactional_producers import StepFailed
from tests.simulation.world import World

_PAUSE_SECONDS_MAX = 0.15
_FREEZE_SECONDS_MAX = 5.0
"""Longer than a session, and than some transactions."""
_STEP_SECONDS_MAX = 0.4
_FREEZE_CHANCE, _PAUSE_CHANCE = 0.04, 0.5
_RECORDS_MAX = 6


class _Take(NamedTuple):
    """The records of one share that a round processes."""

    hashes: HashRange
    records: list[tuple[int, bytes]]
    """Offset and value, in order."""
    offsets: list[int]
    """These and the offsets without a record before them, which no member can process."""
    next_offset: int


class SharerWork:
    """The rounds of one process."""

    def __init__(self, world: World, name: str, transactional_id: str, random: Random) -> None:
        self._world = world
        self._name = name
        self._random = random
        self._client = world.client(f"{name}-work")
        self._offsets = SharedOffsets(world, self._client)
        self._transactions = SharerTransactions(world, f"{name}-{transactional_id}", transactional_id, random)

    async def run(self, member: Callable[[], Member]) -> None:
        """Round after round, as the member that it is then."""
        while True:
            await asyncio.sleep(self._random.uniform(0.01, _PAUSE_SECONDS_MAX))
            try:
                await self._round(member())
            except (Disconnected, StepFailed):
                self.disconnect()

    def disconnect(self) -> None:
        self._client.disconnect()
        self._transactions.disconnect()

    async def _round(self, member: Member) -> None:
        usable = member.usable()
        idles = self._world.scenario.shares_in_transactions and not member.individual
        if not usable or member.epoch == JOIN_EPOCH or idles:
            return
        count_max = 1 if self._world.is_ending else min(2, len(usable))
        chosen = self._random.sample(usable, self._random.randint(1, count_max))
        committer = member.committer
        member.busy.update(chosen)
        is_done = False
        try:
            found = {one: await self._take(member, one) for one in chosen}
            takes = {one: take for one, take in found.items() if take is not None and take.offsets}
            if takes:
                await self._process(member, committer, takes)
            is_done = True
        finally:
            member.busy.difference_update(chosen)
            if not is_done:
                self._go_back(member, chosen)

    def _go_back(self, member: Member, partitions: list[TopicIdPartition]) -> None:
        """Begin again at the committed offsets."""
        for partition in partitions:
            member.positions.pop(partition, None)

    async def _process(
        self, member: Member, committer: Committer, takes: dict[TopicIdPartition, _Take]
    ) -> None:
        await self._pause_sometimes()
        if not committer.individual:
            await self._commit_ordinarily(committer, takes)
        elif self._world.scenario.shares_in_transactions:
            await self._run_transaction(committer, takes)
        else:
            await self._commit(committer, takes)
        for partition, take in takes.items():
            position = member.positions.get(partition)
            if position is not None:
                position.next_offset = take.next_offset

    async def _pause_sometimes(self) -> None:
        """A pause between two steps, seldom a long one."""
        chance = self._random.random()
        if not self._world.is_ending and chance < _PAUSE_CHANCE:
            is_long = chance < _FREEZE_CHANCE
            await asyncio.sleep(
                self._random.uniform(0, _FREEZE_SECONDS_MAX if is_long else _STEP_SECONDS_MAX)
            )

    # Reading

    async def _take(self, member: Member, partition: TopicIdPartition) -> _Take | None:
        if partition not in member.positions:
            await self._find_position(member, partition)
        position, hashes = member.positions.get(partition), member.held.get(partition)
        if position is None or hashes is None:
            return None
        found = await self._read(partition, position.next_offset)
        return None if found is None else self._choose(hashes, position, found)

    async def _find_position(self, member: Member, partition: TopicIdPartition) -> None:
        in_transactions = self._world.scenario.shares_in_transactions
        if in_transactions and not self._transactions.is_at_rest and self._random.random() < 0.5:
            # Its last transaction may be open, or about to be committed. Without this it waits for the end.
            await self._transactions.become_producer()
        found = (await self._offsets.fetch([partition], require_stable=True, member=member)).get(partition)
        if found is None or isinstance(found, ErrorCode):
            self._note(f"reads no offset: {None if found is None else found.name}")
            return
        if found.next_offset < 0:
            await self._offsets.commit(member.committer, {}, {partition: ()}, start=START_OFFSET)
        elif partition in member.held:
            ignores_ranges = not member.individual
            done = (
                set[int]() if ignores_ranges else {one for one in found.offsets if one >= found.next_offset}
            )
            member.positions[partition] = Position(found.next_offset, done)

    async def _read(self, partition: TopicIdPartition, first_offset: int) -> Committed | None:
        max_bytes = self._random.choice((1, 500, 1 << 20))
        answer = await fetch_committed(self._client, partition, first_offset, max_bytes)
        if answer is None or answer.error_code is not ErrorCode.none:
            return None
        return committed_records(answer, first_offset)

    def _choose(self, hashes: HashRange, position: Position, found: Committed) -> _Take:
        """The next records of the member's hashes, at most some."""
        values, done = dict(found.records), position.done
        take = _Take(hashes, [], [], found.next_offset)
        count_max = self._random.randint(1, _RECORDS_MAX)
        for offset in range(position.next_offset, found.next_offset):
            if len(take.records) == count_max:
                return take._replace(next_offset=offset)
            value = values.get(offset)
            if offset in done:
                continue
            if value is None:
                take.offsets.append(offset)
                continue
            key = key_of(value)
            if hashes.has_record(NO_KEY if key is None else key_hash(key), offset):
                take.records.append((offset, value))
                take.offsets.append(offset)
        if not take.offsets:
            position.next_offset = found.next_offset
        return take

    # Committing

    async def _commit(self, member: Committer, takes: dict[TopicIdPartition, _Take]) -> None:
        """By OffsetCommit, sometimes the later half first."""
        offsets = {one: take.offsets for one, take in takes.items()}
        shares = {one: take.hashes for one, take in takes.items()}
        if self._random.random() < 0.3:
            halves = {one: len(ones) // 2 for one, ones in offsets.items()}
            late = {one: ones[halves[one] :] for one, ones in offsets.items()}
            await self._commit_part(member, shares, late)
            await self._pause_sometimes()
            offsets = {one: ones[: halves[one]] for one, ones in offsets.items() if halves[one]}
        if offsets:
            await self._commit_part(member, shares, offsets)

    async def _commit_part(
        self,
        member: Committer,
        shares: dict[TopicIdPartition, HashRange],
        offsets: dict[TopicIdPartition, list[int]],
    ) -> None:
        code = await self._offsets.commit(member, shares, offsets)
        self._note(f"commits ranges: {code.name}")
        if code is not ErrorCode.none:
            raise StepFailed

    async def _commit_ordinarily(self, member: Committer, takes: dict[TopicIdPartition, _Take]) -> None:
        """As a member that does not know ranges: it has whole partitions."""
        for partition, take in takes.items():
            code = await self._offsets.commit_ordinarily(
                partition, take.next_offset, member_id=member.member_id, epoch=member.epoch
            )
            self._note(f"commits {partition.partition} at {take.next_offset}: {code.name}")
            if code is not ErrorCode.none:
                raise StepFailed

    async def _run_transaction(self, member: Committer, takes: dict[TopicIdPartition, _Take]) -> None:
        transactions = self._transactions
        if not transactions.is_at_rest:
            await transactions.become_producer()
        transactions.begin()
        try:
            await self._write_results(takes)
            await self._pause_sometimes()
            shares = {one: take.hashes for one, take in takes.items()}
            offsets = {one: take.offsets for one, take in takes.items()}
            await transactions.commit_ranges(member, shares, offsets)
            await self._pause_sometimes()
        except Disconnected:
            transactions.forget()
            raise
        except StepFailed:
            await self._end(commit=False)
            raise
        commits = self._world.is_ending or self._random.random() < 0.85
        await self._end(commit=commits)
        if not commits:
            raise StepFailed

    async def _end(self, *, commit: bool) -> None:
        try:
            await self._transactions.end(commit=commit)
        except BaseException:
            self._transactions.forget()
            raise

    async def _write_results(self, takes: dict[TopicIdPartition, _Take]) -> None:
        transaction = self._transactions.transaction
        for partition, take in takes.items():
            ranges = self._world.ordinary.sharing.ranges(partition)
            values: dict[bytes, Result] = {}
            for offset, value in take.records:
                name = f"{partition.partition}/{offset}/{self._world.ordinary.sharing.new_number()}"
                values[name.encode()] = Result(
                    partition, offset, key_of(value), reset_count_of(ranges), transaction
                )
            self._world.ordinary.sharing.sends(values)
            if values:
                records = [(one.key, value) for value, one in values.items()]
                await self._transactions.write(partition.partition, records)

    def _note(self, what: str) -> None:
        self._world.trace.event(f"{self._name} {what}")
