"""Fifty short runs. `make sim` makes longer ones, for any number of seeds or minutes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.simulation import simulate

PROJECT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("seed", range(50))
def test_every_promise_is_kept(seed: int) -> None:
    simulate(str(seed))


def test_a_seed_gives_the_same_run_again() -> None:
    assert simulate("again") == simulate("again")


def test_seeds_differ() -> None:
    assert simulate("one").trace_hash != simulate("another").trace_hash


@pytest.mark.parametrize("seed", ["3", "10"])
def test_the_order_of_sets_has_no_influence(seed: str) -> None:
    """Otherwise a failure could not be repeated in another process."""
    lines = {_line_of_run(seed, hash_seed) for hash_seed in ("1", "2")}
    assert len(lines) == 1, lines


def _line_of_run(seed: str, hash_seed: str) -> str:
    command = [sys.executable, "-m", "tests.simulation.run", "--seed", seed, "--length", "1500"]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run(
        command, cwd=PROJECT, env=environment, capture_output=True, text=True, timeout=100, check=True
    )
    line = done.stdout.splitlines()[0]
    assert line.startswith(f"seed {seed}: ")
    return line
