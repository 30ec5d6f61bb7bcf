"""Followers: the offset that all live ones have, and which are forgotten."""

from uuid import UUID

from barnabas.coordinator.metadata.followers import (
    FOLLOWER_SESSION_MS,
    FOLLOWERS_MAX,
    FollowerKey,
    Followers,
)

A, B = FollowerKey(2, UUID(int=1)), FollowerKey(3, UUID(int=1))


def test_without_followers_nothing_is_waited_for() -> None:
    assert Followers().replicated_offset(0) is None


def test_the_one_furthest_behind_counts() -> None:
    followers = Followers()
    followers.heard(A, 10, 0)
    followers.heard(B, 20, 0)
    assert followers.replicated_offset(0) == 10
    followers.heard(A, 30, 0)
    assert followers.replicated_offset(0) == 20


def test_a_follower_that_cut_its_log_is_where_it_says() -> None:
    followers = Followers()
    followers.heard(A, 10, 0)
    followers.heard(A, 5, 1)
    assert followers.replicated_offset(1) == 5


def test_one_with_a_new_disk_is_another_one() -> None:
    followers = Followers()
    followers.heard(A, 10, 0)
    followers.heard(A._replace(directory_id=UUID(int=2)), 0, 0)
    assert (len(followers), followers.replicated_offset(0)) == (2, 0)


def test_a_silent_one_is_forgotten() -> None:
    followers = Followers()
    followers.heard(A, 10, 0)
    followers.heard(B, 20, 1)
    assert followers.replicated_offset(FOLLOWER_SESSION_MS - 1) == 10
    assert followers.replicated_offset(FOLLOWER_SESSION_MS) == 20
    assert followers.replicated_offset(FOLLOWER_SESSION_MS + 1) is None


def test_of_too_many_the_one_silent_longest_is_forgotten() -> None:
    followers = Followers()
    followers.heard(A, 1, 0)
    for node_id in range(FOLLOWERS_MAX):
        followers.heard(FollowerKey(100 + node_id, None), 50, 1)
    assert len(followers) == FOLLOWERS_MAX
    assert followers.replicated_offset(1) == 50
