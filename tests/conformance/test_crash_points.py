"""The broker ends at each single disk operation of several flows of groups and transactions. All changes
confirmed by then are in force in the next broker, and clients that repeat their requests succeed.

Each flow runs once on a disk that keeps the state that a crash would leave after each operation. Then a
broker is started from each of these states, killed or without power, and the flow's check goes on with the
answers that clients had by then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import ProducerIdentity, TopicIdPartition
from tests.conformance.acknowledging_in_transactions import acknowledge, initialised
from tests.conformance.conftest import with_log_store_only
from tests.conformance.crash_flows import TOPIC, Flow, Told, check_everywhere
from tests.conformance.dead_lettering import offsets_of_letters, use_dead_letters
from tests.conformance.harness import Client, Lab, settle
from tests.conformance.share_member import ACCEPT, REJECT, ShareMember, acknowledged
from tests.conformance.transacting import TIMEOUT_MS, Transacting, committed, ends, state

OK = ErrorCode.none
GROUP = "billing"
CHECK_MS = 20_000
"""The maximum duration of the coordinators' timed actions, except timeouts."""

REBALANCE_MS = 4_000


@with_log_store_only
@pytest.mark.parametrize("flush", ["interval", "always"])
class TestWhereverTheBrokerEnds:
    async def test_a_classic_group_keeps_members_generation_and_offsets(self, flush: str) -> None:
        await check_everywhere(ClassicRebalance(), flush)

    async def test_a_partition_has_one_owner_while_a_group_is_reconciled(self, flush: str) -> None:
        await check_everywhere(Reconciliation(), flush)

    @pytest.mark.parametrize("store", ["log", "topic"])
    async def test_each_rejected_record_has_one_dead_letter(self, flush: str, store: str) -> None:
        await check_everywhere(DeadLetterFlow(store), flush)

    @pytest.mark.parametrize("version", [0, 2])
    @pytest.mark.parametrize("commit", [True, False])
    async def test_a_transaction_is_all_or_nothing(self, flush: str, version: int, commit: bool) -> None:
        await check_everywhere(WholeTransaction(version, commit=commit), flush)

    @pytest.mark.parametrize(
        ("store", "version", "commit"),
        [("log", 2, True), ("log", 0, False), ("topic", 2, False), ("topic", 0, True)],
    )
    async def test_acknowledgements_follow_their_transaction(
        self, flush: str, store: str, version: int, commit: bool
    ) -> None:
        await check_everywhere(AcknowledgingTransaction(store, version, commit=commit), flush)


class DeadLetterFlow(Flow):
    """A member of a share group rejects records, and dead letters are written. No letter is lost, and none is
    written twice.
    """

    def __init__(self, store: str) -> None:
        super().__init__()
        self.settings = {"share.state.store": store}

    async def prepare(self, lab: Lab) -> None:
        await super().prepare(lab)
        await lab.configure_group(GROUP, auto_offset_reset="earliest")
        await use_dead_letters(lab, GROUP)
        member = self._member = self._new_member(lab, self.told)
        await member.join(TOPIC)
        await lab.produce(self.told["topic_id"], 6)
        acquired = await member.take(max_wait=0)
        await settle()
        acquired += await member.take(max_wait=0)
        self.told["offsets"] = [offset for first, last, _ in acquired for offset in range(first, last + 1)]

    def _new_member(self, lab: Lab, told: Told) -> ShareMember:
        partition = TopicIdPartition(told["topic_id"], 0)
        return ShareMember(lab.client(), [partition], group_id=GROUP)

    async def run(self, lab: Lab) -> None:
        for first in (0, 2):
            offsets = self.told["offsets"][first : first + 2]
            pending = self._member.start_acknowledge([(offsets[0], offsets[1], REJECT)])
            result = acknowledged(await lab.answered(pending))
            assert result.errors == [0]
            self.told["rejected"] = self.told["offsets"][: first + 2]
            for _ in range(3):
                await settle()

    async def check(self, lab: Lab, told: Told) -> None:
        member = self._new_member(lab, told)
        await member.join(TOPIC)
        await member.take(max_wait=0)
        for _ in range(3):
            await settle()
        rejected = told.get("rejected", [])
        found = await offsets_of_letters(lab)
        assert len(found) == len(set(found))
        assert set(rejected) <= set(found)
        # The group goes on: each record has one outcome.
        for first, last, _ in await member.take():
            await member.accept(first, last)
        await lab.advance(30_000)
        for first, last, _ in await member.take():
            await member.accept(first, last)
        assert (await lab.offsets(GROUP, TopicIdPartition(told["topic_id"], 0)))[1] == 0
        assert await offsets_of_letters(lab) == found


class AcknowledgingTransaction(Flow):
    """A member's records are acknowledged in a transaction that writes, too. Both follow its outcome."""

    def __init__(self, store: str, version: int, *, commit: bool) -> None:
        super().__init__()
        self.settings = {"share.state.store": store}
        self._version = version
        self._commit = commit

    async def prepare(self, lab: Lab) -> None:
        await super().prepare(lab)
        await lab.configure_group(GROUP, auto_offset_reset="earliest")
        self._client = lab.client()
        member = self._member = ShareMember(
            self._client, [TopicIdPartition(self.told["topic_id"], 0)], group_id=GROUP
        )
        await member.join(TOPIC)
        await lab.produce(self.told["topic_id"], 4)
        acquired = await member.take(max_wait=0)
        await settle()
        acquired += await member.take(max_wait=0)
        self.told["offsets"] = [offset for first, last, _ in acquired for offset in range(first, last + 1)]
        # The topics that the broker creates at their first use exist.
        self._producer = await initialised(lab.client(), version=self._version)
        await self._acknowledge(0, 0)
        assert await self._producer.end() is OK
        self.told["producer"] = self._producer.producer

    async def run(self, lab: Lab) -> None:
        assert await self._producer.write(1) is OK
        await self._acknowledge(1, 2)
        self.told["is acknowledged"] = True
        ending = self._producer.start_end(commit=self._commit)
        assert (await lab.answered(ending)).error_code is OK
        self.told["ended"] = True

    async def _acknowledge(self, first: int, last: int) -> None:
        offsets = self.told["offsets"]
        code = await acknowledge(
            self._client, self._member, self._producer, offsets[first], offsets[last], ACCEPT
        )
        assert code is OK

    async def check(self, lab: Lab, told: Told) -> None:
        commits = self._commit and told.get("is acknowledged", False)
        if told.get("is acknowledged"):
            producer = Transacting(lab.client(), version=self._version)
            producer.producer = ProducerIdentity(*told["producer"])
            if not told.get("ended"):
                await self._end(lab, producer)
        else:
            await lab.advance(TIMEOUT_MS + CHECK_MS)
        await lab.advance(CHECK_MS)
        assert await state(lab) in ({"CompleteCommit"} if commits else {"CompleteCommit", "CompleteAbort"})
        stable, end = await ends(lab, 1)
        assert stable == end
        member = ShareMember(lab.client(), [TopicIdPartition(told["topic_id"], 0)], group_id=GROUP)
        await member.join(TOPIC)
        found = await member.take(max_wait=0)
        await settle()
        found += await member.take(max_wait=0)
        delivered = [offset for first, last, _ in found for offset in range(first, last + 1)]
        assert delivered == told["offsets"][3 if commits else 1 :]

    async def _end(self, lab: Lab, producer: Transacting) -> None:
        """The producer asks until the end is known to be complete."""
        while (code := await producer.end(commit=self._commit)) is ErrorCode.concurrent_transactions:
            await lab.advance(100)
        assert code is OK


class ClassicRebalance(Flow):
    """A member of a stable group commits. Another one joins, both sync, both commit."""

    async def prepare(self, lab: Lab) -> None:
        await super().prepare(lab)
        self._clients = {"a": lab.client(), "b": lab.client()}
        joined = await self._join(lab, "a")
        await self._sync("a", joined, ["a"])

    async def run(self, lab: Lab) -> None:
        await self._commit("a", 5)
        new = self._clients["b"].send("join_group", 3, **_join("", "b"))
        await settle()
        again = self._clients["a"].send("join_group", 3, **_join(self.told["a"], "a"))
        leader = await lab.answered(again)
        follower = await lab.answered(new)
        self.told["b"] = follower.member_id
        waiting = self._clients["b"].send("sync_group", **_sync(follower))
        await self._sync("a", leader, ["a", "b"])
        assert (await lab.answered(waiting)).error_code is OK
        self.told["b synced"] = True
        await self._commit("a", 6)
        await self._commit("b", 7)

    async def _join(self, lab: Lab, name: str) -> Any:
        pending = self._clients[name].send("join_group", 3, **_join("", name))
        await lab.advance(1)
        joined = pending.response()
        self.told[name] = joined.member_id
        return joined

    async def _sync(self, name: str, joined: Any, names: list[str]) -> None:
        assignments = [{"member_id": self.told[one], "assignment": one.encode()} for one in names]
        synced = await self._clients[name].ask("sync_group", **_sync(joined), assignments=assignments)
        assert (synced.error_code, synced.assignment) == (OK, name.encode())
        self.told["generation"] = joined.generation_id

    async def _commit(self, name: str, offset: int) -> None:
        self.told["sent"] = offset
        code = await commit(self._clients[name], self.told[name], self.told["generation"], offset, self.told)
        assert code is OK
        self.told["committed"] = offset

    async def check(self, lab: Lab, told: Told) -> None:
        client = lab.client()
        assert await committed(lab) in (told.get("committed", -1), told.get("sent", -1))
        (group,) = (await client.ask("describe_groups", groups=[GROUP])).groups
        names = {one.member_id for one in group.members}
        assert told["a"] in names
        assert not told.get("b synced") or told["b"] in names
        # A member that was answered with a written generation is in it, or in the next one that was about to
        # begin.
        beat: dict[str, Any] = {
            "group_id": GROUP,
            "generation_id": told["generation"],
            "member_id": told["a"],
        }
        code = (await client.ask("heartbeat", **beat)).error_code
        assert code in (OK, ErrorCode.illegal_generation)
        assert code is OK or "b" in told
        await self._check_it_goes_on(lab, client, told)

    async def _check_it_goes_on(self, lab: Lab, client: Client, told: Told) -> None:
        """Member a joins again; all other members are gone, and the generation is a later one."""
        pending = client.send("join_group", 3, **_join(told["a"], "a"))
        await lab.advance(1)
        if not pending.done:
            await lab.advance(REBALANCE_MS)
        joined = pending.response()
        assert joined.error_code is OK
        assert joined.generation_id > told["generation"]
        assignments = [{"member_id": told["a"], "assignment": b"all"}]
        synced = await client.ask("sync_group", **_sync(joined), assignments=assignments)
        assert (synced.error_code, synced.assignment) == (OK, b"all")
        assert await commit(client, told["a"], joined.generation_id, 9, told) is OK
        assert await commit(client, told["a"], told["generation"], 3, told) is ErrorCode.illegal_generation
        assert await committed(lab) == 9


def _join(member_id: str, name: str) -> dict[str, Any]:
    return {
        "group_id": GROUP,
        "session_timeout": 10_000,
        "rebalance_timeout": REBALANCE_MS,
        "member_id": member_id,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": name.encode()}],
    }


def _sync(joined: Any) -> dict[str, Any]:
    return {
        "group_id": GROUP,
        "generation_id": joined.generation_id,
        "member_id": joined.member_id,
        "protocol_type": "consumer",
        "protocol_name": "range",
    }


async def commit(client: Client, member_id: str, epoch: int, offset: int, told: Told) -> ErrorCode:
    """OffsetCommit of partition 0."""
    partition = {"partition_index": 0, "committed_offset": offset, "committed_metadata": ""}
    answer = await client.ask(
        "offset_commit",
        group_id=GROUP,
        member_id=member_id,
        generation_id_or_member_epoch=epoch,
        topics=[{"topic_id": told["topic_id"], "partitions": [partition]}],
    )
    return ErrorCode(answer.topics[0].partitions[0].error_code)


class WholeTransaction(Flow):
    """Records in two partitions and a group's offset, committed or aborted as one."""

    def __init__(self, version: int, *, commit: bool) -> None:
        super().__init__()
        self._version = version
        self._commit = commit

    async def prepare(self, lab: Lab) -> None:
        await super().prepare(lab)
        self._producer = Transacting(lab.client(), version=self._version)
        assert await self._producer.init() is OK
        # The topics that the broker creates at their first use exist.
        assert await self._producer.write(2) is OK
        assert await self._producer.commit_offset(1) is OK
        assert await self._producer.end() is OK
        self.told["producer"] = self._producer.producer

    async def run(self, lab: Lab) -> None:
        for partition in (0, 1):
            assert await self._producer.write(partition) is OK
            self.told["written"] = partition + 1
        assert await self._producer.commit_offset(8) is OK
        self.told["is complete"] = True
        ending = self._producer.start_end(commit=self._commit)
        assert (await lab.answered(ending)).error_code is OK
        await settle()
        self.told["ended"] = True

    async def check(self, lab: Lab, told: Told) -> None:
        client = lab.client()
        producer = Transacting(client, version=self._version)
        producer.producer = ProducerIdentity(*told["producer"])
        for partition in range(told.get("written", 0)):
            assert (await ends(lab, partition))[1] >= 2
        if told.get("is complete"):
            await self._check_end(lab, producer, told)
        else:
            await lab.advance(TIMEOUT_MS + CHECK_MS)
            assert await committed(lab, require_stable=True) == 1
        assert await state(lab) in ("CompleteCommit", "CompleteAbort")
        for partition in (0, 1):
            stable, end = await ends(lab, partition)
            assert stable == end

    async def _check_end(self, lab: Lab, producer: Transacting, told: Told) -> None:
        """The producer repeats its request to end, after any outcome of the first one."""
        if told.get("ended"):
            assert await committed(lab, require_stable=True) == (8 if self._commit else 1)
        code = await producer.end(commit=self._commit)
        while code is ErrorCode.concurrent_transactions:
            await lab.advance(100)
            code = await producer.end(commit=self._commit)
        assert code is OK
        await lab.advance(CHECK_MS)
        assert await state(lab) == ("CompleteCommit" if self._commit else "CompleteAbort")
        assert await committed(lab, require_stable=True) == (8 if self._commit else 1)
        for partition in (0, 1):
            stable, end = await ends(lab, partition)
            # It is unknown whether a marker was written before the crash: there may be a second one.
            assert stable == end
            assert end in (3, 4)


class Reconciliation(Flow):
    """A member has all partitions. Another one joins, and gets the partitions that the first one gives up."""

    async def prepare(self, lab: Lab) -> None:
        await super().prepare(lab)
        self._client = lab.client()
        self.told["members"] = {}
        await self._beat("a", 0, ())

    async def run(self, lab: Lab) -> None:
        await self._beat("b", 0, ())
        for _ in range(3):
            for name in ("a", "b"):
                await self._beat(name, *self.told["members"][name])
        assert _is_shared(self.told["members"])

    async def _beat(self, name: str, epoch: int, owned: tuple[int, ...]) -> None:
        self.told["members"] = await beaten(self._client, self.told, name, epoch, owned)

    async def check(self, lab: Lab, told: Told) -> None:
        client, now = lab.client(), dict(told)
        if "b" not in now["members"]:
            now["members"] = await beaten(client, now, "b", 0, ())
        for _ in range(4):
            for name, (epoch, owned) in sorted(now["members"].items()):
                now["members"] = await beaten(client, now, name, epoch, owned)
        assert _is_shared(now["members"])
        for name, (epoch, _) in told["members"].items():
            assert now["members"][name][0] >= epoch


Members = Mapping[str, tuple[int, tuple[int, ...]]]
"""Epoch and partitions by member."""


async def beaten(client: Client, told: Told, name: str, epoch: int, owned: tuple[int, ...]) -> Members:
    """The members' knowledge after a heartbeat of one of them. No partition may belong to two."""
    topic_id: UUID = told["topic_id"]
    # Full, as after a lost connection: a full request gets a full answer.
    response = await client.ask(
        "consumer_group_heartbeat",
        group_id=GROUP,
        member_id=name,
        member_epoch=epoch,
        topic_partitions=[{"topic_id": topic_id, "partitions": owned}] if owned else [],
        rebalance_timeout=60_000,
        subscribed_topic_names=[TOPIC],
    )
    assert response.error_code is OK, response
    if response.assignment is not None:
        owned = tuple(index for topic in response.assignment.topic_partitions for index in topic.partitions)
    members = {**told["members"], name: (response.member_epoch, owned)}
    held = [index for _, partitions in members.values() for index in partitions]
    assert len(held) == len(set(held)), members
    return members


def _is_shared(members: Members) -> bool:
    sizes = sorted(len(owned) for _, owned in members.values())
    return sizes == [1, 2] and {index for _, owned in members.values() for index in owned} == {0, 1, 2}
