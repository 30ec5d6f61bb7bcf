"""Deadlines: one timer for all owners, and each owner is expired once at its time."""

import gc
import weakref
from collections.abc import Callable

import pytest
from structlog.testing import capture_logs

from barnabas.runtime.deadlines import Deadlines
from tests.broker.network.edge_fakes import ManualClock, ManualTimers


class Owner:
    """Expires at the given times, in order."""

    def __init__(self, *deadlines_ms: int) -> None:
        self.deadlines_ms = list(deadlines_ms)
        self.expired_at_ms: list[int] = []
        self.on_expire: Callable[[], None] = lambda: None

    def next_deadline_ms(self) -> int | None:
        return self.deadlines_ms[0] if self.deadlines_ms else None

    def expire(self, now_ms: int) -> None:
        while self.deadlines_ms and self.deadlines_ms[0] <= now_ms:
            self.deadlines_ms.pop(0)
        self.expired_at_ms.append(now_ms)
        self.on_expire()


class Bench:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.timers = ManualTimers(self.clock)
        self.deadlines = Deadlines(self.clock, self.timers.call_later)

    def schedule(self, *owners: Owner) -> None:
        for owner in owners:
            deadline_ms = owner.next_deadline_ms()
            assert deadline_ms is not None
            self.deadlines.schedule(owner, deadline_ms)


def schedule_three(bench: Bench) -> list[str]:
    """Three owners, in another order than their deadlines; the list gets their names as they expire."""
    order: list[str] = []
    owners = {"late": Owner(1_300), "early": Owner(1_100), "middle": Owner(1_200)}
    for name, owner in owners.items():
        owner.on_expire = lambda name=name: order.append(name)  # type: ignore[misc]
        bench.schedule(owner)
    return order


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_an_owner_is_expired_when_its_deadline_has_passed(bench: Bench) -> None:
    owner = Owner(1_050)
    bench.schedule(owner)
    bench.timers.advance(49)
    assert owner.expired_at_ms == []
    bench.timers.advance(1)
    assert owner.expired_at_ms == [1_050]
    assert len(bench.deadlines) == 0


def test_an_owner_with_several_deadlines_is_scheduled_again_by_itself(bench: Bench) -> None:
    owner = Owner(1_010, 1_020, 1_500)
    bench.schedule(owner)
    bench.timers.advance(1_000)
    assert owner.expired_at_ms == [1_010, 1_020, 1_500]


def test_one_timer_serves_all_owners_in_order(bench: Bench) -> None:
    order = schedule_three(bench)
    assert bench.timers.armed_ms == [1_100]
    bench.timers.advance(300)
    assert order == ["early", "middle", "late"]
    assert bench.timers.armed_ms == []


def test_owners_that_are_due_together_are_expired_in_the_order_of_their_deadlines(bench: Bench) -> None:
    order = schedule_three(bench)
    bench.clock.now_ms += 300
    bench.timers.advance(0)
    assert order == ["early", "middle", "late"]


def test_an_earlier_deadline_replaces_a_later_one_and_not_the_other_way_round(bench: Bench) -> None:
    owner = Owner(1_100)
    bench.schedule(owner)
    bench.deadlines.schedule(owner, 1_500)
    assert bench.timers.armed_ms == [1_100]
    owner.deadlines_ms = [1_050]
    bench.deadlines.schedule(owner, 1_050)
    assert bench.timers.armed_ms == [1_050]
    bench.timers.advance(200)
    assert owner.expired_at_ms == [1_050]


def test_an_owner_whose_deadline_was_postponed_is_asked_again_and_not_expired_early(bench: Bench) -> None:
    owner = Owner(1_100)
    bench.schedule(owner)
    owner.deadlines_ms = [1_400]
    bench.timers.advance(200)
    assert owner.expired_at_ms == []
    bench.timers.advance(200)
    assert owner.expired_at_ms == [1_400]


def test_a_cancelled_owner_is_not_expired(bench: Bench) -> None:
    owner = Owner(1_100)
    bench.schedule(owner)
    bench.deadlines.cancel(owner)
    bench.deadlines.cancel(owner)
    bench.timers.advance(200)
    assert owner.expired_at_ms == []


def test_an_owner_whose_deadline_does_not_move_cannot_spin(bench: Bench) -> None:
    owner = Owner(1_010)
    owner.on_expire = lambda: owner.deadlines_ms.append(1_010)
    bench.schedule(owner)
    bench.timers.advance(14)
    assert owner.expired_at_ms == [1_010, 1_011, 1_012, 1_013, 1_014]


def test_the_failure_of_one_owner_is_logged_and_the_others_expire(bench: Bench) -> None:
    def fail() -> None:
        raise RuntimeError("broken owner")

    broken, sound = Owner(1_010), Owner(1_010)
    broken.on_expire = fail
    bench.schedule(broken, sound)
    with capture_logs() as lines:
        bench.timers.advance(20)
    assert sound.expired_at_ms == [1_010]
    assert [line["event"] for line in lines] == ["deadline failed"]


def test_an_owner_scheduled_by_another_one_in_the_same_pass_is_expired_too(bench: Bench) -> None:
    first, second = Owner(1_010), Owner(1_010)
    first.on_expire = lambda: bench.deadlines.schedule(second, 1_010)
    bench.schedule(first)
    bench.timers.advance(20)
    assert second.expired_at_ms == [1_011]


def test_cancelled_owners_are_not_kept_alive(bench: Bench) -> None:
    owner = Owner(9_000)
    bench.schedule(owner)
    bench.deadlines.cancel(owner)
    reference = weakref.ref(owner)
    del owner
    gc.collect()
    assert reference() is None


def test_the_heap_stays_in_proportion_to_the_owners_that_wait(bench: Bench) -> None:
    keeper = Owner(1_000_000)
    bench.schedule(keeper)
    for step in range(10_000):
        owner = Owner(900_000 + step)
        bench.schedule(owner)
        bench.deadlines.cancel(owner)
    assert len(bench.deadlines) == 1
    assert bench.deadlines.heap_size < 100
    bench.timers.advance(1_000_000)
    assert keeper.expired_at_ms == [1_000_000]


def test_nothing_happens_after_closing(bench: Bench) -> None:
    owner = Owner(1_100)
    bench.schedule(owner)
    bench.deadlines.close()
    bench.deadlines.schedule(owner, 1_100)
    bench.timers.advance(200)
    assert owner.expired_at_ms == []
    assert bench.timers.armed_ms == []
