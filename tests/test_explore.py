"""The search of `make explore`, with commands that end at once."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.explore import EXPLORERS, Command, Explorer, Turn, explore, summary


def clock(seconds_per_look: float) -> Callable[[], float]:
    """A clock that goes on by itself with each look."""
    now = 0.0

    def now_seconds() -> float:
        nonlocal now
        now += seconds_per_look
        return now

    return now_seconds


def printing(text: str, exit_code: int = 0) -> Explorer:
    command = ("sh", "-c", f"echo {text}; exit {exit_code}")
    return lambda random, minutes_left: command


def explored(explorers: Mapping[str, Explorer], folder: Path, minutes: float = 1.0) -> list[Turn]:
    turns: list[Turn] = []
    explore(turns, explorers, random.Random(0), minutes, now_seconds=clock(10.0), folder=folder)
    return turns


def test_explorers_take_turns_until_the_time_is_over(tmp_path: Path) -> None:
    turns = explored({"a": printing("x"), "b": printing("y")}, tmp_path)
    assert [turn.explorer for turn in turns] == ["a", "b", "a", "b", "a"]


def test_a_failure_is_printed_and_kept_and_the_search_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    turns = explored({"bad": printing("found-it", exit_code=3), "good": printing("quiet")}, tmp_path)
    assert [turn.exit_code for turn in turns] == [3, 0, 3, 0, 3]
    assert turns[0].output.read_text() == "found-it\n"
    printed = capsys.readouterr().out
    assert "found-it\nfailed with exit code 3" in printed
    assert "\nquiet\n" not in printed


def test_the_summary_counts_turns_and_repeats_the_commands_of_failures(tmp_path: Path) -> None:
    lines = summary(explored({"bad": printing("x", 1), "good": printing("y")}, tmp_path)).splitlines()
    assert [line.split()[:3] for line in lines[1:3]] == [["bad", "3", "3"], ["good", "2", "0"]]
    assert lines[3:] == ["failed: sh -c 'echo x; exit 1'"] * 3


@pytest.mark.parametrize("name", EXPLORERS)
def test_the_same_seed_chooses_the_same_commands(name: str) -> None:
    def commands(seed: int) -> list[Command]:
        choices = random.Random(seed)
        return [EXPLORERS[name](choices, 30.0) for _ in range(20)]

    assert commands(1) == commands(1)
    assert name == "fuzz" or commands(1) != commands(2)
    assert commands(1)[0][:2] == ("make", name)
