"""One share session: its partitions, their turns, and the partitions that a response names."""

from __future__ import annotations

from uuid import UUID

import pytest

from barnabas.protocol.identity import TopicIdPartition
from barnabas.share.sessions.session import (
    ShareSession,
)
from tests.share.sessions.session_building import in_session, partitions_of, session_of, update

TOPIC = UUID(int=1)
P0, P1, P2, P3 = (TopicIdPartition(TOPIC, index) for index in range(4))


def test_partitions_are_added_then_forgotten() -> None:
    session = session_of(P0, P1)
    update(session, [P2, P1, P3], [P0, P3])
    assert partitions_of(session) == [P1, P2]
    assert (len(session), session.has(in_session(session, P1)), session.has(in_session(session, P3))) == (
        2,
        True,
        False,
    )


@pytest.mark.parametrize(
    ("share_session_epoch", "order"),
    [
        (0, [P0, P1, P2]),
        (1, [P1, P2, P0]),
        (2, [P2, P0, P1]),
        (3, [P0, P1, P2]),
        (4, [P1, P2, P0]),
        (-1, [P0, P1, P2]),
    ],
)
def test_the_order_turns_with_the_epoch(share_session_epoch: int, order: list[TopicIdPartition]) -> None:
    assert partitions_of(session_of(P0, P1, P2).partitions_in_turn(share_session_epoch)) == order
    assert session_of().partitions_in_turn(share_session_epoch) == []


def test_a_session_whose_group_has_begun_everywhere_keeps_its_order() -> None:
    session = session_of(P0, P1, P2)
    session.note_begun(session.revision)
    served: list[TopicIdPartition] = []
    for epoch in range(1, 8):
        first = session.partitions_in_turn(epoch)[0]
        session.must_answer(first, has_records=True, has_error=False)
        served.append(first.partition)
    assert served == [P0, P1, P2, P0, P1, P2, P0]


def test_a_partition_with_an_error_keeps_no_other_waiting() -> None:
    session = session_of(P0, P1, P2)
    session.note_begun(session.revision)
    session.must_answer(in_session(session, P0), has_records=False, has_error=True)
    assert partitions_of(session.partitions_in_turn(1)) == [P1, P2, P0]


def answered(
    session: ShareSession,
    *,
    records: tuple[TopicIdPartition, ...] = (),
    errors: tuple[TopicIdPartition, ...] = (),
) -> list[int]:
    return [
        partition.key.partition
        for partition in list(session)
        if session.must_answer(
            partition,
            has_records=partition.partition in records,
            has_error=partition.partition in errors,
        )
    ]


def test_a_response_names_partitions_that_are_new_or_have_records_or_have_or_had_an_error() -> None:
    session = session_of(P0, P1, P2)
    assert answered(session) == [0, 1, 2], "the first response names all"
    assert answered(session) == []
    assert answered(session, records=(P1,)) == [1]
    assert answered(session, errors=(P2,)) == [2]
    assert answered(session) == [2], "the end of the error is reported once"
    assert answered(session) == []
    update(session, [P3, P0], [])
    assert answered(session) == [3]


def test_a_session_knows_whether_it_owes_answers() -> None:
    session = session_of(P0, P1)
    owes = [session.owing_count > 0]
    answered(session)
    owes.append(session.owing_count > 0)
    answered(session, errors=(P1,))
    owes.append(session.owing_count > 0)
    update(session, [], [P1])
    owes.append(session.owing_count > 0)
    update(session, [P2], [])
    owes.append(session.owing_count > 0)
    assert owes == [True, False, True, False, True]


def test_the_topics_of_a_session_follow_its_partitions() -> None:
    other = TopicIdPartition(UUID(int=2), 0)
    session = session_of(P0, other)
    assert set(session.find_topic_ids()) == {TOPIC, other.topic_id}
    update(session, [], [other])
    assert set(session.find_topic_ids()) == {TOPIC}
    update(session, [other], [])
    assert set(session.find_topic_ids()) == {TOPIC, other.topic_id}


def test_a_partition_that_gave_records_goes_to_the_end() -> None:
    session = session_of(P0, P1, P2)
    answered(session, records=(P0,))
    assert partitions_of(session) == [P1, P2, P0]


def test_a_partition_outside_of_the_session_is_named_if_it_has_records_or_an_error() -> None:
    session = session_of(P0)
    assert session.must_answer(in_session(session, P1), has_records=False, has_error=True)
    assert not session.must_answer(in_session(session, P1), has_records=False, has_error=False)
    assert partitions_of(session) == [P0]


def test_a_new_partition_has_to_begin_and_a_partition_that_is_named_again_has_not() -> None:
    session = session_of(P0, P1)
    before, old = session.has_begun_all, session.revision
    session.note_begun(old)
    update(session, [P1], [])
    named_again = session.has_begun_all
    update(session, [P2], [])
    assert (before, named_again, session.has_begun_all) == (False, True, False)
    session.note_begun(old)
    assert not session.has_begun_all, "a request that has waited knows the old ones only"
    session.note_begun(session.revision)
    update(session, [P2], [P0])
    session.note_begun(old)
    assert not session.has_begun_all
