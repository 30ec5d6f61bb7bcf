"""The bounds of kept answers, and the answers that a repeated request finds."""

from __future__ import annotations

from uuid import UUID

import pytest

from barnabas.protocol.identity import TopicIdPartition
from barnabas.runtime.completion import Completion
from barnabas.share.fetch import kept_answers
from barnabas.share.fetch.kept_answers import (
    ENDED_SESSIONS_MAX,
    KEPT_AFTER_END_MS,
    RANGE_BYTES,
    KeptAnswer,
    KeptAnswers,
)
from barnabas.share.sessions.acknowledgements import SUCCESS, Results
from barnabas.share.sessions.session import ShareSession
from tests.share.sessions.session_building import session_of, session_partitions

(PARTITION,) = session_partitions([TopicIdPartition(UUID(int=1), 0)]).values()


def session(number: int = 1) -> ShareSession:
    return session_of(PARTITION.partition, member_id=f"m{number}")


def kept(
    answers: KeptAnswers, of: ShareSession, epoch: int, *, acknowledges: bool = True, size_bytes: int = 100
) -> KeptAnswer:
    results: Results = {PARTITION: SUCCESS} if acknowledges else {}
    answer = KeptAnswer(of, epoch, ("share_fetch", bytes(size_bytes), False), Completion.of(results))
    answers.keep(answer)
    return answer


def found(
    answers: KeptAnswers, answer: KeptAnswer, *, live: ShareSession | None = None, now_ms: int = 0
) -> bool:
    """Whether the request of this answer gets it when it is repeated."""
    key, epoch = answer.session.key, answer.share_session_epoch
    got = answers.find(key, epoch, answer.content, live_session=live, now_ms=now_ms)
    return got is answer


def test_only_the_answers_of_the_live_session_count() -> None:
    answers, of, newer = KeptAnswers(), session(), session()
    answer = kept(answers, of, 1)
    assert found(answers, answer, live=of)
    assert not found(answers, answer, live=newer)


def test_the_first_answer_of_a_new_session_replaces_those_of_the_last() -> None:
    answers = KeptAnswers()
    earlier = [kept(answers, session(), epoch) for epoch in (1, 2)]
    newest = kept(answers, session(), 1)
    assert [found(answers, one) for one in earlier] == [False, False]
    assert found(answers, newest)
    assert (len(answers), answers.kept_bytes) == (1, newest.kept_bytes)


def test_bytes_are_those_of_the_request_and_of_the_acquired_ranges() -> None:
    answers, of = KeptAnswers(), session()
    answer = kept(answers, of, 1, size_bytes=70)
    assert answers.kept_bytes == 70
    answers.note_acquired(answer, {PARTITION: [(0, 4, 1), (9, 9, 2)]}, 2)
    assert answers.kept_bytes == 70 + 2 * RANGE_BYTES
    answers.note_acquired(answer, {PARTITION: [(0, 4, 1)]}, 1)
    assert answers.kept_bytes == 70 + RANGE_BYTES
    answers.forget(of.key)
    assert (len(answers), answers.kept_bytes) == (0, 0)


def test_ranges_of_a_forgotten_answer_are_not_kept() -> None:
    answers, of = KeptAnswers(), session()
    answer = kept(answers, of, 1)
    answers.forget(of.key)
    answers.note_acquired(answer, {PARTITION: [(0, 4, 1)]}, 1)
    assert (answers.kept_bytes, dict(answer.acquired)) == (0, {})


def test_at_the_limit_an_answer_or_its_ranges_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_answers, "KEPT_BYTES_MAX", 200)
    answers = KeptAnswers()
    first = kept(answers, session(1), 1)
    answers.note_acquired(first, {PARTITION: [(0, 4, 1)]}, 1)
    assert (answers.kept_bytes, dict(first.acquired)) == (100, {})
    assert not found(answers, kept(answers, session(2), 1, size_bytes=101))
    assert found(answers, kept(answers, session(3), 1))
    assert answers.kept_bytes == 200


def test_the_end_of_a_session_keeps_results_for_a_time() -> None:
    answers, of = KeptAnswers(), session()
    answer = kept(answers, of, 1)
    answers.session_ended(of, 1_000)
    assert found(answers, answer, now_ms=1_000 + KEPT_AFTER_END_MS - 1)
    assert not found(answers, answer, now_ms=1_000 + KEPT_AFTER_END_MS)
    assert answers.kept_bytes == 0


def test_results_that_are_still_being_recorded_are_kept() -> None:
    answers, of = KeptAnswers(), session()
    pending: Completion[Results] = Completion()
    content = "share_fetch", b"topics", False
    answers.keep(KeptAnswer(of, 1, content, pending))
    answers.session_ended(of, 0)
    pending.complete({})
    answer = answers.find(of.key, 1, content, live_session=None, now_ms=0)
    assert answer is not None
    assert answer.results is pending


def test_the_end_of_a_session_forgets_answers_without_results() -> None:
    answers, of = KeptAnswers(), session()
    kept(answers, of, 1, acknowledges=False)
    answers.session_ended(of, 0)
    assert len(answers) == 0


def test_the_end_of_a_session_without_requests_forgets_earlier_ones() -> None:
    answers = KeptAnswers()
    kept(answers, session(), 1)
    answers.session_ended(session(), 0)
    assert len(answers) == 0


def test_expired_answers_go_with_the_next_end_of_a_session() -> None:
    answers, first, second = KeptAnswers(), session(1), session(2)
    kept(answers, first, 1)
    kept(answers, second, 1)
    answers.session_ended(first, 0)
    answers.session_ended(second, KEPT_AFTER_END_MS)
    assert len(answers) == 1


def test_at_the_limit_the_session_that_ended_first_is_forgotten() -> None:
    answers = KeptAnswers()
    sessions = [session(number) for number in range(ENDED_SESSIONS_MAX + 1)]
    kept_first, *others = [kept(answers, one, 1) for one in sessions]
    for one in sessions:
        answers.session_ended(one, 0)
    assert not found(answers, kept_first)
    assert all(found(answers, one) for one in others)


def test_a_request_that_is_too_large_to_be_recognised_is_not_kept() -> None:
    answers, of = KeptAnswers(), session()
    assert not found(answers, kept(answers, of, 1, size_bytes=0))
    assert len(answers) == 0
