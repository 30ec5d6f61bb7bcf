"""The pauses between tries."""

from __future__ import annotations

from barnabas.client.waiting.backoff import Backoff


def test_pauses_double_up_to_the_longest() -> None:
    backoff = Backoff(100, 1_000, random=lambda: 0.5)
    assert [backoff.next_ms() for _ in range(6)] == [100, 200, 400, 800, 1_000, 1_000]


def test_a_success_resets_the_pause() -> None:
    backoff = Backoff(100, 1_000, random=lambda: 0.5)
    backoff.next_ms()
    backoff.reset()
    assert backoff.next_ms() == 100


def test_pauses_differ_between_clients() -> None:
    shortest, longest = Backoff(100, 1_000, lambda: 0.0), Backoff(100, 1_000, lambda: 0.999_999)
    assert (shortest.next_ms(), longest.next_ms()) == (80, 120)
