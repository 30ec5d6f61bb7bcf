"""What was in flight is in flight again, with the same counts; against a share-partition of a few lines."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import cast
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.client.acknowledgements import AcknowledgeType
from barnabas.client.connection import Connection
from barnabas.client.errors import BrokerError
from barnabas.pipeline.export import in_flight
from barnabas.pipeline.export.in_flight import InFlightReplay, Wanted
from barnabas.pipeline.export.manifest import ACCEPTED, ARCHIVED, AVAILABLE
from barnabas.protocol.decode.share_acknowledge import ShareAcknowledgeBody
from barnabas.protocol.decode.share_acknowledge_response import ShareAcknowledgeReply
from barnabas.protocol.decode.share_fetch import ShareFetchBody
from barnabas.protocol.decode.share_fetch_response import ShareFetchReply
from barnabas.protocol.encode.share_fetch import ShareFetchPartitionResult, ShareFetchTopicResult
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition

PARTITION = TopicIdPartition(UUID(int=7), 0)
START = 100
HELD = "held"
_SETTLED = {
    AcknowledgeType.ACCEPT: ACCEPTED,
    AcknowledgeType.REJECT: ARCHIVED,
    AcknowledgeType.RELEASE: AVAILABLE,
}


@dataclass
class SharePartition:
    """Records from `START` on, handed out in their order; a connection to their leader."""

    record_count: int
    locks_max: int = 1_000
    refuses: ErrorCode = ErrorCode.none
    counts: dict[int, int] = field(default_factory=dict[int, int])
    states: dict[int, str] = field(default_factory=dict[int, str])
    is_open: bool = True
    ended: bool = False

    async def start(self, _api: object, body: ShareFetchBody, *, wait_ms: int) -> ShareFetchReply:
        assert wait_ms and body.without_records
        acquired: list[tuple[int, int, int]] = []
        for offset in range(START, START + self.record_count):
            is_free = self.states.get(offset, AVAILABLE) == AVAILABLE
            if is_free and len(acquired) < body.max_records and offset < START + self.locks_max:
                self.states[offset] = HELD
                self.counts[offset] = self.counts.get(offset, 0) + 1
                acquired.append((offset, offset, self.counts[offset]))
        result = ShareFetchPartitionResult(0, int(self.refuses), None, 0, None, [], acquired)
        topic = ShareFetchTopicResult(PARTITION.topic_id, [result])
        return ShareFetchReply(0, 0, None, 30_000, [topic], [])

    async def ask(self, _api: object, body: ShareAcknowledgeBody) -> ShareAcknowledgeReply:
        self.ended = body.share_session_epoch == -1
        for topic in body.topics:
            for partition in topic.partitions:
                for first, last, (kind,) in partition.acknowledgement_batches:
                    for offset in range(first, last + 1):
                        assert self.states[offset] == HELD
                        self.states[offset] = _SETTLED[AcknowledgeType(kind)]
        return ShareAcknowledgeReply(0, 0, None, 30_000, [], [])

    def run(self, wanted: list[Wanted], record_count: int) -> int:
        async def replay() -> int:
            return await InFlightReplay(cast("Connection", self), "workers", PARTITION).run(
                wanted, record_count
            )

        return asyncio.run(replay())


STATES = st.tuples(
    st.integers(1, 4), st.sampled_from([AVAILABLE, AVAILABLE, ACCEPTED, ARCHIVED]), st.integers(1, 5)
)


@given(st.lists(STATES, min_size=1, max_size=8))
def test_every_record_gets_its_state_and_its_count(lengths: list[tuple[int, str, int]]) -> None:
    wanted: list[Wanted] = []
    offset = START
    for length, state, count in lengths:
        wanted.append(Wanted(offset, offset + length, state, count))
        offset += length
    partition = SharePartition(record_count=offset - START + 10)

    assert partition.run(wanted, offset - START) == 0

    assert partition.ended
    assert set(partition.states) == set(range(START, offset)), "records behind these were touched"
    for one in wanted:
        for of_range in range(one.first_offset, one.end_offset):
            assert partition.states[of_range] == one.state
            if one.state == AVAILABLE:
                assert partition.counts[of_range] == one.delivery_count


def test_a_record_that_nothing_is_said_of_was_delivered_once() -> None:
    partition = SharePartition(record_count=5)
    partition.run([Wanted(START + 2, START + 3, ACCEPTED, 1)], 3)
    assert [partition.states[START + one] for one in range(3)] == [AVAILABLE, AVAILABLE, ACCEPTED]
    assert partition.counts[START] == 1


def test_what_is_not_handed_out_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_flight, "GIVE_UP_SECONDS", 0.01)
    partition = SharePartition(record_count=10, locks_max=4)
    assert partition.run([Wanted(START, START + 10, ACCEPTED, 1)], 10) == 6
    assert list(partition.states.values()) == [ACCEPTED] * 4


def test_a_refusal_ends_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_flight, "GIVE_UP_SECONDS", 0.01)
    partition = SharePartition(record_count=10, refuses=ErrorCode.group_authorization_failed)
    with pytest.raises(BrokerError, match="group_authorization_failed"):
        partition.run([Wanted(START, START + 1, ACCEPTED, 1)], 1)
    assert partition.ended
