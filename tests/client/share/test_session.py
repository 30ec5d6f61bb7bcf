"""The share session's epochs, and the partitions that a fetch names."""

from __future__ import annotations

from uuid import UUID

import pytest

from barnabas.client.share.session import EPOCH_MAX, SessionFetch, ShareSession, ack_topics, forgotten_topics
from barnabas.protocol.decode.acknowledgements import AckBatch, AckPartition, AckTopic
from barnabas.protocol.identity import TopicIdPartition

ORDERS, RETURNS = UUID(int=1), UUID(int=2)
A, B, C = TopicIdPartition(ORDERS, 0), TopicIdPartition(ORDERS, 1), TopicIdPartition(RETURNS, 0)
BATCH = AckBatch(3, 5, b"\x01")


def test_the_first_fetch_opens_the_session_with_every_partition() -> None:
    session = ShareSession()
    assert not session.is_open
    assert session.fetch(frozenset({B, A})) == SessionFetch(0, [A, B], [])
    assert session.is_open


def test_later_fetches_name_only_changes() -> None:
    session = ShareSession()
    session.fetch(frozenset({A, B}))
    assert session.fetch(frozenset({A, B})) == SessionFetch(1, [], [])
    assert session.fetch(frozenset({B, C})) == SessionFetch(2, [C], [A])
    assert session.partitions == {B, C}


def test_fetches_and_acknowledgements_share_one_epoch() -> None:
    session = ShareSession()
    session.fetch(frozenset({A}))
    assert [session.acknowledge(), session.fetch(frozenset({A})).share_session_epoch] == [1, 2]


def test_epochs_wrap_around_to_one() -> None:
    session = ShareSession()
    session.fetch(frozenset({A}))
    session.share_session_epoch = EPOCH_MAX
    assert [session.acknowledge(), session.acknowledge()] == [EPOCH_MAX, 1]


def test_nothing_is_acknowledged_without_a_session() -> None:
    with pytest.raises(AssertionError):
        ShareSession().acknowledge()


def test_a_partition_both_added_and_acknowledged_is_named_once() -> None:
    assert ack_topics([A, C], {A: [BATCH], B: [BATCH]}) == [
        AckTopic(ORDERS, [AckPartition(0, [BATCH]), AckPartition(1, [BATCH])]),
        AckTopic(RETURNS, [AckPartition(0, [])]),
    ]


def test_forgotten_partitions_are_listed_by_topic() -> None:
    assert forgotten_topics([A, B, C]) == [(ORDERS, [0, 1]), (RETURNS, [0])]
