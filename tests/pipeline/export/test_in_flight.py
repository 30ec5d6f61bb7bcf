"""Records in flight are in flight again, with the same counts; against a simulated share-partition."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import cast
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.client.errors import BrokerError
from barnabas.client.network.connection import Connection
from barnabas.client.share.acknowledgements import AcknowledgeType
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.export import in_flight
from barnabas.pipeline.export.in_flight import Inexact, InFlightReplay, WantedState
from barnabas.pipeline.export.manifest import ACCEPTED, ARCHIVED, ARCHIVING, AVAILABLE
from barnabas.pipeline.export.target_limits import TargetLimits
from barnabas.protocol.client.share_acknowledge_response import ShareAcknowledgeReply
from barnabas.protocol.client.share_fetch_response import ShareFetchReply
from barnabas.protocol.decode.share_acknowledge import ShareAcknowledgeBody
from barnabas.protocol.decode.share_fetch import ShareFetchBody
from barnabas.protocol.encode.share_fetch import ShareFetchPartitionResult, ShareFetchTopicResult
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition

PARTITION = TopicIdPartition(UUID(int=7), 0)
START = 100
HELD = "held"
_SETTLED = {
    AcknowledgeType.GAP: ARCHIVED,
    AcknowledgeType.ACCEPT: ACCEPTED,
    AcknowledgeType.REJECT: ARCHIVED,
    AcknowledgeType.RELEASE: AVAILABLE,
}


@dataclass
class SharePartition:
    """Records from `START` on, handed out in their order; a connection to their leader."""

    record_count: int
    locks_max: int = 1_000
    deliveries_max: int = 10
    held_by_another: frozenset[int] = frozenset()
    has_letters: bool = False
    """Whether the group has dead letters."""
    letters: dict[int, int] = field(default_factory=dict[int, int])
    """By offset, the delivery count in the letter."""
    is_stale: bool = False
    """Whether the leader learns of the new state only at the next acknowledgement."""
    refuses: ErrorCode = ErrorCode.none
    counts: dict[int, int] = field(default_factory=dict[int, int])
    states: dict[int, str] = field(default_factory=dict[int, str])
    is_open: bool = True
    ended: bool = False

    async def start(self, _api: object, body: ShareFetchBody, *, wait_ms: int) -> ShareFetchReply:
        assert wait_ms and body.without_records
        acquired: list[tuple[int, int, int]] = []
        for offset in range(START, START + self.record_count):
            is_free = self.states.get(offset, AVAILABLE) == AVAILABLE and offset not in self.held_by_another
            if is_free and len(acquired) < body.max_records and offset < START + self.locks_max:
                self.states[offset] = HELD
                self.counts[offset] = self.counts.get(offset, 0) + 1
                acquired.append((offset, offset, self.counts[offset]))
        result = ShareFetchPartitionResult(0, int(self.refuses), None, 0, None, [], acquired)
        topic = ShareFetchTopicResult(PARTITION.topic_id, [result])
        return ShareFetchReply(0, 0, None, 30_000, [topic], [])

    async def ask(self, _api: object, body: ShareAcknowledgeBody) -> ShareAcknowledgeReply:
        self.ended = body.share_session_epoch == -1
        if self.is_stale and body.topics:
            return ShareAcknowledgeReply(0, int(ErrorCode.fenced_state_epoch), None, 30_000, [], [])
        for topic in body.topics:
            for partition in topic.partitions:
                for first, last, (kind,) in partition.acknowledgement_batches:
                    for offset in range(first, last + 1):
                        assert self.states[offset] == HELD
                        if self.has_letters and kind == AcknowledgeType.REJECT:
                            self.letters[offset] = self.counts[offset]
                        self.states[offset] = _SETTLED[AcknowledgeType(kind)]
                        if self.states[offset] == AVAILABLE and self.counts[offset] >= self.deliveries_max:
                            self.states[offset] = ARCHIVED
        return ShareAcknowledgeReply(0, 0, None, 30_000, [], [])

    def run(self, wanted: list[WantedState], record_count: int) -> Inexact:
        limits = TargetLimits(self.deliveries_max, self.locks_max, has_letters=self.has_letters)

        async def replay() -> Inexact:
            one = InFlightReplay(cast("Connection", self), "workers", PARTITION, limits)
            return await one.run(wanted, record_count)

        return asyncio.run(replay())


STATES = st.tuples(
    st.integers(1, 4), st.sampled_from([AVAILABLE, AVAILABLE, ACCEPTED, ARCHIVED]), st.integers(1, 5)
)


@given(st.lists(STATES, min_size=1, max_size=8))
def test_every_record_gets_its_state_and_its_count(lengths: list[tuple[int, str, int]]) -> None:
    wanted: list[WantedState] = []
    offset = START
    for length, state, count in lengths:
        wanted.append(WantedState(offset, offset + length, state, count))
        offset += length
    partition = SharePartition(record_count=offset - START + 10)

    assert partition.run(wanted, offset - START) == Inexact(0, 0)

    assert partition.ended
    assert set(partition.states) == set(range(START, offset)), "records behind these were touched"
    for one in wanted:
        for of_range in range(one.first_offset, one.end_offset):
            assert partition.states[of_range] == one.state
            if one.state == AVAILABLE:
                assert partition.counts[of_range] == one.delivery_count


def test_a_record_on_its_way_to_a_dead_letter_gets_it_and_no_other_record_gets_one() -> None:
    partition = SharePartition(record_count=9, has_letters=True)
    wanted = [
        WantedState(START, START + 2, ARCHIVED, 1),
        WantedState(START + 2, START + 3, ARCHIVING, 3),
        WantedState(START + 3, START + 4, AVAILABLE, 2),
        WantedState(START + 4, START + 6, ARCHIVING, 1),
    ]
    assert partition.run(wanted, 6) == Inexact(0, 0, 0)
    assert partition.letters == {START + 2: 3, START + 4: 1, START + 5: 1}
    assert partition.states[START + 3] == AVAILABLE
    assert [partition.states[START + one] for one in (0, 1, 2, 4, 5)] == [ARCHIVED] * 5


def test_a_letter_at_the_delivery_limit_counts_one_delivery_less() -> None:
    partition = SharePartition(record_count=9, has_letters=True, deliveries_max=3)
    assert partition.run([WantedState(START, START + 1, ARCHIVING, 3)], 1) == Inexact(0, 0, 0)
    assert partition.letters == {START: 2}


def test_letters_that_the_target_does_not_write_are_counted() -> None:
    partition = SharePartition(record_count=9)
    wanted = [WantedState(START, START + 1, ARCHIVED, 1), WantedState(START + 1, START + 4, ARCHIVING, 2)]
    assert partition.run(wanted, 4) == Inexact(0, 0, 3)
    assert set(partition.states.values()) == {ARCHIVED}


def test_a_record_without_a_state_was_delivered_once() -> None:
    partition = SharePartition(record_count=5)
    partition.run([WantedState(START + 2, START + 3, ACCEPTED, 1)], 3)
    assert [partition.states[START + one] for one in range(3)] == [AVAILABLE, AVAILABLE, ACCEPTED]
    assert partition.counts[START] == 1


WITH_A_DELAYED_ONE = [
    WantedState(START, START + 1, ACCEPTED, 1),
    WantedState(START + 1, START + 2, AVAILABLE, 0),
    WantedState(START + 2, START + 3, AVAILABLE, 3),
]


def test_nothing_is_repeated_for_a_record_without_a_delivery() -> None:
    """The target does not deliver it before it is due."""
    partition = SharePartition(record_count=5, held_by_another=frozenset({START + 1}))
    assert partition.run(WITH_A_DELAYED_ONE, 2) == Inexact(0, 0)
    assert partition.states == {START: ACCEPTED, START + 2: AVAILABLE}
    assert partition.counts[START + 2] == 3


def test_a_record_without_a_delivery_that_comes_along_is_left_to_the_end_of_the_session() -> None:
    partition = SharePartition(record_count=5)
    assert partition.run(WITH_A_DELAYED_ONE, 2) == Inexact(0, 0)
    assert partition.states == {START: ACCEPTED, START + 1: HELD, START + 2: AVAILABLE}
    assert (partition.counts[START + 2], partition.ended) == (3, True)


def test_records_above_the_limit_of_locks_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_flight, "GIVE_UP_SECONDS", 0.01)
    partition = SharePartition(record_count=10, locks_max=4)
    assert partition.run([WantedState(START, START + 10, ACCEPTED, 1)], 10) == Inexact(6, 0)
    assert list(partition.states.values()) == [ACCEPTED] * 4


@pytest.mark.parametrize("deliveries_max", [2, 3, 4, 5])
def test_no_record_is_archived_for_having_been_delivered_too_often(deliveries_max: int) -> None:
    wanted = [WantedState(START + count - 1, START + count, AVAILABLE, count) for count in range(1, 6)]
    partition = SharePartition(record_count=9, deliveries_max=deliveries_max)

    inexact = partition.run(wanted, 5)

    assert inexact == Inexact(0, 6 - deliveries_max)
    assert partition.states == dict.fromkeys(range(START, START + 5), AVAILABLE)
    assert list(partition.counts.values()) == [min(count, deliveries_max - 1) for count in range(1, 6)]


def test_a_target_that_delivers_too_few_records_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(in_flight, "GIVE_UP_SECONDS", 0.01)
    partition = SharePartition(record_count=4)
    with pytest.raises(PipelineError, match="delivers 4 records where there are 5"):
        partition.run([WantedState(START, START + 5, ACCEPTED, 1)], 5)
    assert set(partition.states.values()) == {AVAILABLE}
    assert partition.ended


def test_records_behind_those_in_flight_are_an_error() -> None:
    partition = SharePartition(record_count=9, held_by_another=frozenset({START + 1}))
    with pytest.raises(PipelineError, match="delivers 3 records where there are 3"):
        partition.run([WantedState(START, START + 3, ACCEPTED, 1)], 3)
    assert ACCEPTED not in partition.states.values()


def test_records_that_were_released_and_do_not_come_back_are_an_error() -> None:
    partition = SharePartition(record_count=9, deliveries_max=2)
    unaware = InFlightReplay(cast("Connection", partition), "workers", PARTITION, TargetLimits(5, 1_000))
    with pytest.raises(PipelineError, match="delivers other records than the released ones"):
        asyncio.run(unaware.run([WantedState(START, START + 2, AVAILABLE, 4)], 2))


def test_a_leader_with_an_old_state_gives_its_own_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(in_flight, "GIVE_UP_SECONDS", 0.01)
    partition = SharePartition(record_count=2, is_stale=True)
    with pytest.raises(BrokerError, match="fenced_state_epoch"):
        partition.run([WantedState(START, START + 5, ACCEPTED, 1)], 5)


def test_a_refusal_ends_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_flight, "GIVE_UP_SECONDS", 0.01)
    partition = SharePartition(record_count=10, refuses=ErrorCode.group_authorization_failed)
    with pytest.raises(BrokerError, match="group_authorization_failed"):
        partition.run([WantedState(START, START + 1, ACCEPTED, 1)], 1)
    assert partition.ended
