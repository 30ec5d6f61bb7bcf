"""Rounds of checks over all groups, in parts."""

from __future__ import annotations

from barnabas.coordinator.offsets.retention_rounds import GROUP_COST, PART_OFFSETS_MAX, RetentionRounds

INTERVAL_MS = 1_000


class Bench:
    """Groups with these numbers of offsets; a round begins when the time has come."""

    def __init__(self, counts: dict[str, int]) -> None:
        self.counts = counts
        self.rounds = RetentionRounds(INTERVAL_MS, lambda: self.counts, lambda one: self.counts.get(one, 0))
        self.rounds.begin(0)

    def part(self, now_ms: int) -> list[str]:
        """The next part, with which everybody is done at once."""
        taken = self.rounds.take(now_ms)
        for _ in taken:
            self.rounds.done()
        return taken

    def round(self, now_ms: int) -> list[list[str]]:
        """All parts that are due."""
        parts: list[list[str]] = []
        while (due_ms := self.rounds.next_deadline_ms()) is not None and due_ms <= now_ms:
            parts.append(self.part(now_ms))
        return parts


def many(count: int, offset_count: int) -> dict[str, int]:
    return {f"group-{number}": offset_count for number in range(count)}


def test_a_part_has_a_bound_and_a_round_has_each_group_once() -> None:
    bench = Bench(many(300, 100))
    parts = bench.round(INTERVAL_MS)
    assert all(len(part) * (100 + GROUP_COST) <= PART_OFFSETS_MAX for part in parts)
    assert [one for part in parts for one in part] == list(bench.counts)


def test_groups_without_offsets_are_bounded_too() -> None:
    bench = Bench(many(300, 0))
    assert {len(part) for part in bench.round(INTERVAL_MS)} == {PART_OFFSETS_MAX // GROUP_COST}


def test_a_group_with_more_than_a_part_holds_is_one_by_itself() -> None:
    bench = Bench({"small": 1, "large": 2 * PART_OFFSETS_MAX, "last": 1})
    assert bench.round(INTERVAL_MS) == [["small"], ["large"], ["last"]]


def test_nothing_is_due_before_its_time_nor_without_groups() -> None:
    bench = Bench({})
    assert bench.part(INTERVAL_MS - 1) == []
    assert bench.rounds.next_deadline_ms() == INTERVAL_MS
    assert bench.part(INTERVAL_MS) == []
    assert bench.rounds.next_deadline_ms() == 2 * INTERVAL_MS


def test_the_next_part_is_due_at_once_when_the_last_one_has_ended() -> None:
    bench = Bench(many(2, PART_OFFSETS_MAX))
    assert bench.rounds.take(INTERVAL_MS) == ["group-0"]
    assert bench.rounds.next_deadline_ms() is None
    assert bench.rounds.take(INTERVAL_MS + 5) == []
    assert bench.rounds.done()
    assert bench.rounds.next_deadline_ms() == INTERVAL_MS
    assert bench.rounds.take(INTERVAL_MS + 5) == ["group-1"]


def test_the_next_round_is_due_an_interval_after_the_last_one_began() -> None:
    bench = Bench(many(2, PART_OFFSETS_MAX))
    assert bench.part(INTERVAL_MS + 10) == ["group-0"]
    assert bench.part(INTERVAL_MS + 300) == ["group-1"]
    assert bench.rounds.next_deadline_ms() == 2 * INTERVAL_MS + 10


def test_a_round_that_takes_longer_than_an_interval_is_ended_first() -> None:
    bench = Bench(many(2, PART_OFFSETS_MAX))
    assert bench.part(INTERVAL_MS) == ["group-0"]
    assert bench.part(3 * INTERVAL_MS) == ["group-1"]
    assert bench.part(3 * INTERVAL_MS) == ["group-0"]


def test_a_group_that_is_made_meanwhile_is_of_the_next_round() -> None:
    bench = Bench(many(2, PART_OFFSETS_MAX))
    bench.part(INTERVAL_MS)
    bench.counts = {"new": 1, **bench.counts}
    assert bench.round(INTERVAL_MS) == [["group-1"]]
    assert bench.part(2 * INTERVAL_MS) == ["new"]


def test_a_group_that_is_deleted_meanwhile_does_no_harm() -> None:
    bench = Bench(many(3, PART_OFFSETS_MAX))
    bench.part(INTERVAL_MS)
    bench.counts = {}
    assert bench.round(INTERVAL_MS) == [["group-1", "group-2"]]
