"""Idle leaders: the ones that are dropped, the ones that write a checkpoint first, and the number at
a time.
"""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.protocol.identity import SharePartitionKey
from barnabas.runtime.completion import Completion
from barnabas.share.leader import idle_leaders
from barnabas.share.leader.idle_leaders import LOOK_INTERVAL_MS, IdleLeaders, checkpoint_before_closing
from barnabas.storage.errors import LogOffline
from tests.storage.log_building import TOPIC_ID


class FakeLeader:
    """The part of a leader that matters for idleness. Its checkpoints are written immediately, unless they
    fail.
    """

    def __init__(self, number: int, delta_count: int = 0) -> None:
        self.key = SharePartitionKey("group", TOPIC_ID, number)
        self.used = True
        self.is_idle = True
        self.is_initialised = True
        self.delta_count = delta_count
        self.offline: Exception | None = None
        self.failing = False
        self.closed = False
        self.core = self.log = self.image = self
        self.checkpoint_count = 0

    def checkpoint(self) -> Completion[None]:
        self.checkpoint_count += 1
        ticket = Completion[None]()
        if self.failing:
            ticket.fail(LogOffline("the disk is full"))
        else:
            self.delta_count = 0
            ticket.complete(None)
        return ticket


class Looks:
    """Leaders and the looks at them, one interval after the other."""

    def __init__(self, *leaders: FakeLeader) -> None:
        self.leaders: dict[SharePartitionKey, Any] = {leader.key: leader for leader in leaders}
        self.idle = IdleLeaders(self.leaders, self.leaders.__delitem__)
        self.now_ms = 0
        self.idle.loaded(0)

    def look(self) -> int:
        """The number of leaders left after the next look."""
        self.now_ms += LOOK_INTERVAL_MS
        assert self.idle.next_deadline_ms() == self.now_ms
        self.idle.expire(self.now_ms)
        return len(self.leaders)


def test_a_leader_goes_at_the_second_look_after_its_last_use() -> None:
    leader = FakeLeader(0)
    looks = Looks(leader)
    assert looks.look() == 1
    leader.used = True
    assert looks.look() == 1
    assert looks.look() == 0


def test_there_are_no_looks_without_leaders() -> None:
    looks = Looks(FakeLeader(0))
    looks.look()
    looks.look()
    assert looks.idle.next_deadline_ms() is None
    assert looks.idle.loaded(5_000_000) == 5_000_000 + LOOK_INTERVAL_MS


def test_a_leader_at_work_stays() -> None:
    leader = FakeLeader(0)
    leader.is_idle = False
    looks = Looks(leader)
    assert [looks.look() for _ in range(3)] == [1, 1, 1]
    leader.is_idle = True
    assert looks.look() == 0


def test_deltas_become_a_checkpoint_before_the_leader_goes() -> None:
    leader = FakeLeader(0, delta_count=3)
    looks = Looks(leader)
    assert [looks.look(), looks.look()] == [1, 1]
    assert (leader.checkpoint_count, leader.delta_count) == (1, 0)
    assert looks.look() == 0


def test_a_checkpoint_that_cannot_be_written_keeps_the_leader() -> None:
    leader = FakeLeader(0, delta_count=3)
    leader.failing = True
    looks = Looks(leader)
    assert [looks.look() for _ in range(3)] == [1, 1, 1]
    assert leader.checkpoint_count == 2


def test_leaders_of_a_log_that_is_offline_go_without_a_checkpoint() -> None:
    leader = FakeLeader(0, delta_count=3)
    leader.offline = LogOffline("gone")
    looks = Looks(leader)
    assert [looks.look(), looks.look()] == [1, 0]
    assert leader.checkpoint_count == 0


def test_checkpoints_at_a_time_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idle_leaders, "CHECKPOINTS_PER_LOOK_MAX", 2)
    leaders = [FakeLeader(number, delta_count=1) for number in range(5)]
    looks = Looks(*leaders)
    written: list[int] = []
    while len(written) < 4:
        looks.look()
        written.append(sum(leader.checkpoint_count for leader in leaders))
    assert written == [0, 2, 4, 5]
    assert looks.look() == 0


async def test_before_closing_each_leader_with_deltas_writes_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idle_leaders, "CLOSING_CHECKPOINTS_MAX", 2)
    leaders = [FakeLeader(number, delta_count=number % 2) for number in range(8)]
    leaders[1].failing = True
    await checkpoint_before_closing(leaders)  # type: ignore[arg-type]
    assert [leader.checkpoint_count for leader in leaders] == [0, 1, 0, 1, 0, 0, 0, 0]
