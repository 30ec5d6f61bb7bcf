"""The cache of fetch sessions: room, eviction, bounds."""

from __future__ import annotations

from itertools import count
from uuid import UUID

import pytest

from barnabas.broker.sessions.fetch_sessions import (
    EVICTION_MS,
    NO_SESSION,
    FetchSessionCache,
    next_epoch,
    wanted_partitions,
)
from barnabas.coordinator.metadata.topic_names import NAME_LENGTH_MAX
from barnabas.protocol.decode.fetch import FetchPartition, FetchTopic
from barnabas.protocol.errors import ApiError, ErrorCode


def topics(*indexes: int) -> list[FetchTopic]:
    """One topic of a request, by name."""
    return [FetchTopic("t", [FetchPartition(index, -1, 0, -1, -1, 1) for index in indexes])]


def forgotten(*indexes: int) -> list[tuple[str | UUID, list[int]]]:
    return [("t", list(indexes))]


def open_session(cache: FetchSessionCache, size: int, now_ms: int = 0) -> int:
    return cache.open(wanted_partitions(topics(*range(size))), by_id=False, now_ms=now_ms)


def cache_of(slots_max: int, partitions_max: int = 1_000) -> FetchSessionCache:
    return FetchSessionCache(slots_max, count(1).__next__, partitions_max=partitions_max)


@pytest.mark.parametrize(("epoch", "following"), [(0, 1), (1, 2), (2**31 - 1, 1)])
def test_epochs_wrap_around(epoch: int, following: int) -> None:
    assert next_epoch(epoch) == following


def test_used_and_reserved_ids_are_skipped() -> None:
    ids = iter([5, 5, 0, 6])
    cache = FetchSessionCache(9, lambda: next(ids))
    assert [open_session(cache, 1), open_session(cache, 1)] == [5, 6]


def test_names_that_no_topic_can_have_are_not_kept() -> None:
    cache = cache_of(9)
    impossible = [topics(0)[0]._replace(reference="a" * (NAME_LENGTH_MAX + 1))]
    assert cache.open(wanted_partitions(impossible), by_id=False, now_ms=0) == NO_SESSION
    session = cache.find(open_session(cache, 1), 1, by_id=False)
    with pytest.raises(ApiError) as refused:
        cache.advance(session, impossible, (), 0)
    assert refused.value.code is ErrorCode.fetch_session_id_not_found
    assert (len(cache), cache.partition_count) == (0, 0)


class TestEviction:
    def test_a_new_session_is_not_evicted(self) -> None:
        cache = cache_of(1)
        open_session(cache, 1)
        assert open_session(cache, 9, EVICTION_MS) == NO_SESSION

    def test_the_least_recently_used_one_is_evicted(self) -> None:
        cache = cache_of(2)
        first, second = open_session(cache, 5), open_session(cache, 5)
        cache.advance(cache.find(first, 1, by_id=False), (), (), EVICTION_MS)
        assert open_session(cache, 1, EVICTION_MS + 1) == 3
        with pytest.raises(ApiError):
            cache.find(second, 1, by_id=False)
        assert cache.find(first, 2, by_id=False).session_id == first
        assert (len(cache), cache.eviction_count, cache.partition_count) == (2, 1, 6)

    @pytest.mark.parametrize(("size", "opened"), [(2, False), (3, False), (4, True)])
    def test_an_old_one_is_evicted_for_a_larger_one(self, size: int, opened: bool) -> None:
        cache = cache_of(1)
        session = cache.find(open_session(cache, 3), 1, by_id=False)
        cache.advance(session, (), (), EVICTION_MS)
        assert (open_session(cache, size, EVICTION_MS + 1) != NO_SESSION) is opened

    def test_a_refusal_holds_for_a_while_but_not_for_larger_ones(self) -> None:
        cache = cache_of(1)
        session = cache.find(open_session(cache, 3, now_ms=1), 1, by_id=False)
        assert open_session(cache, 5, EVICTION_MS) == NO_SESSION, "too new"
        cache.advance(session, (), (), EVICTION_MS)
        assert open_session(cache, 5, EVICTION_MS + 2) == NO_SESSION, "still taken for granted"
        assert open_session(cache, 6, EVICTION_MS + 2) != NO_SESSION


class TestBounds:
    def test_no_session_is_opened_beyond_the_partitions_of_all(self) -> None:
        cache = cache_of(9, partitions_max=10)
        assert open_session(cache, 6) != NO_SESSION
        assert open_session(cache, 5) == NO_SESSION
        assert open_session(cache, 4) != NO_SESSION

    def test_one_that_grows_beyond_the_bound_ends(self) -> None:
        cache = cache_of(9, partitions_max=10)
        session = cache.find(open_session(cache, 6), 1, by_id=False)
        with pytest.raises(ApiError) as refused:
            cache.advance(session, topics(*range(11)), (), 0)
        assert refused.value.code is ErrorCode.fetch_session_id_not_found
        assert (len(cache), cache.partition_count) == (0, 0)

    def test_partitions_are_counted_when_added_and_removed(self) -> None:
        cache = cache_of(9)
        session = cache.find(open_session(cache, 2), 1, by_id=False)
        assert cache.advance(session, topics(1, 2, 3), forgotten(0, 7), 0)
        assert cache.partition_count == 3
        assert not cache.advance(session, (), forgotten(1, 2, 3), 0)
        assert (cache.partition_count, len(cache)) == (0, 0)
