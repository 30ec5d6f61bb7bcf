"""The share sessions of a broker: epochs, limit, and the connections on which they were opened."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

import pytest

from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from barnabas.share.sessions.session import (
    FINAL_SHARE_SESSION_EPOCH,
    SHARE_SESSION_EPOCH_MAX,
    ShareSession,
    ShareSessionKey,
)
from barnabas.share.sessions.session_cache import ShareSessionCache
from tests.share.sessions.session_building import partitions_of, session_partitions, update

TOPIC = UUID(int=1)
P0, P1, P2 = (TopicIdPartition(TOPIC, index) for index in range(3))
KEY = ShareSessionKey("group", "member-1")
OTHER = ShareSessionKey("group", "member-2")


class SessionRequest(NamedTuple):
    """The session of a fetch, and the partitions that it serves."""

    session: ShareSession
    partitions: list[TopicIdPartition]


def fetch(
    cache: ShareSessionCache,
    share_session_epoch: int,
    *added: TopicIdPartition,
    key: ShareSessionKey = KEY,
    forgotten: tuple[TopicIdPartition, ...] = (),
    connection_id: int = 1,
) -> SessionRequest:
    if share_session_epoch == 0:
        session = cache.open(key, session_partitions(added), connection_id)
    else:
        session = cache.advance(key, share_session_epoch)
        if share_session_epoch != FINAL_SHARE_SESSION_EPOCH:
            update(session, added, forgotten)
    return SessionRequest(session, partitions_of(session.partitions_in_turn(share_session_epoch)))


def test_epoch_0_opens_a_session_with_exactly_the_listed_partitions() -> None:
    cache = ShareSessionCache(10)
    request = fetch(cache, 0, P0, P1)
    assert request.partitions == [P0, P1]
    assert request.session.share_session_epoch == 1
    assert (len(cache), cache.partition_count) == (1, 2)
    fetch(cache, 1, P2)
    assert partitions_of(fetch(cache, 0, P1).session) == [P1], "a new session takes the place of the old one"
    assert (len(cache), cache.partition_count) == (1, 1)


def test_each_request_of_either_api_advances_the_epoch() -> None:
    cache = ShareSessionCache(10)
    session = fetch(cache, 0, P0, P1).session
    assert fetch(cache, 1).partitions == [P1, P0], "in turn"
    cache.advance(KEY, 2)
    assert partitions_of(fetch(cache, 3, P2, forgotten=(P0,)).session) == [P1, P2]
    assert session.share_session_epoch == 4


def test_the_epoch_wraps_to_1() -> None:
    cache = ShareSessionCache(10)
    session = fetch(cache, 0, P0).session
    session.share_session_epoch = SHARE_SESSION_EPOCH_MAX
    fetch(cache, SHARE_SESSION_EPOCH_MAX)
    assert session.share_session_epoch == 1
    fetch(cache, 1)


@pytest.mark.parametrize(
    ("has_session", "api", "share_session_epoch", "code"),
    [
        (False, "fetch", 1, ErrorCode.share_session_not_found),
        (False, "fetch", -1, ErrorCode.share_session_not_found),
        (False, "acknowledge", 1, ErrorCode.share_session_not_found),
        (False, "acknowledge", -1, ErrorCode.share_session_not_found),
        (False, "acknowledge", 0, ErrorCode.invalid_share_session_epoch),
        (True, "fetch", 2, ErrorCode.invalid_share_session_epoch),
        (True, "fetch", -2, ErrorCode.invalid_share_session_epoch),
        (True, "acknowledge", 0, ErrorCode.invalid_share_session_epoch),
        (True, "acknowledge", 2, ErrorCode.invalid_share_session_epoch),
    ],
)
def test_a_wrong_epoch_is_an_error_and_keeps_the_session(
    has_session: bool, api: str, share_session_epoch: int, code: ErrorCode
) -> None:
    cache = ShareSessionCache(10)
    if has_session:
        fetch(cache, 0, P0)
    with pytest.raises(ApiError) as raised:
        if api == "fetch":
            fetch(cache, share_session_epoch, P1)
        else:
            cache.advance(KEY, share_session_epoch)
    assert raised.value.code is code
    session = cache.get(KEY)
    assert session is None or (session.share_session_epoch, partitions_of(session)) == (1, [P0])


def test_the_final_epoch_leaves_the_session_until_it_is_removed() -> None:
    cache = ShareSessionCache(10)
    fetch(cache, 0, P0)
    request = fetch(cache, -1, P1)
    assert partitions_of(request.session) == [P0]
    assert cache.advance(KEY, -1) is request.session
    assert request.session.share_session_epoch == 1
    assert cache.remove(request.session)
    assert not cache.remove(request.session)
    assert (len(cache), cache.get(KEY)) == (0, None)
    assert cache.connection_lost(1) is None


def test_at_the_limit_no_session_is_opened_and_none_is_evicted() -> None:
    cache = ShareSessionCache(1)
    fetch(cache, 0, P0)
    with pytest.raises(ApiError) as raised:
        fetch(cache, 0, P0, key=OTHER)
    assert raised.value.code is ErrorCode.share_session_limit_reached
    assert cache.get(OTHER) is None
    fetch(cache, 0, P1)
    assert len(cache) == 1, "a session may always be replaced by a new one"


def test_a_lost_connection_makes_room() -> None:
    cache = ShareSessionCache(1)
    session = fetch(cache, 0, P0, connection_id=7).session
    assert cache.connection_lost(7) is session
    assert cache.connection_lost(7) is None
    assert fetch(cache, 0, P0, key=OTHER).session.key == OTHER


def test_a_lost_connection_ends_only_the_session_opened_on_it_last() -> None:
    cache = ShareSessionCache(10)
    first = fetch(cache, 0, P0).session
    second = fetch(cache, 0, P0, key=OTHER).session
    assert cache.connection_lost(1) is second
    assert cache.get(KEY) is first


def test_requests_over_another_connection_do_not_bind_the_session_to_it() -> None:
    cache = ShareSessionCache(10)
    session = fetch(cache, 0, P0, connection_id=1).session
    fetch(cache, 1, connection_id=2)
    assert cache.connection_lost(2) is None
    assert cache.get(KEY) is session


def test_a_session_opened_anew_elsewhere_survives_the_old_connection() -> None:
    cache = ShareSessionCache(10)
    fetch(cache, 0, P0, connection_id=1)
    session = fetch(cache, 0, P0, connection_id=2).session
    assert cache.connection_lost(1) is None
    assert cache.get(KEY) is session


def test_a_moved_session_ends_with_its_new_connection() -> None:
    cache = ShareSessionCache(10)
    session = fetch(cache, 0, P0, connection_id=1).session
    cache.move(session, 2)
    assert cache.connection_lost(1) is None
    assert cache.connection_lost(2) is session


def test_a_session_may_move_away_from_a_connection_with_a_newer_one() -> None:
    cache = ShareSessionCache(10)
    first = fetch(cache, 0, P0).session
    second = fetch(cache, 0, P0, key=OTHER).session
    cache.move(first, 2)
    assert cache.connection_lost(1) is second
    assert cache.connection_lost(2) is first
